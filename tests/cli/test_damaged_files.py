"""Files from strangers: whatever is in one, a command ends in a sentence that names it, or works.

The changes are drawn by seeds, so that every run meets the same files.
"""

import pytest
from click.testing import CliRunner

from damaged_files import PARQUET, READERS, damaged, write_parquet_files, write_whole_files
from longtail.cli import app

SEEDS = 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write_whole_files(folder)
    return folder


@pytest.fixture(scope="module")
def parquet(whole):
    pytest.importorskip("pyarrow")
    write_parquet_files(whole)
    return whole


def run(words):
    return CliRunner().invoke(app, list(map(str, words)))


def command(name, file, recipe="recipe.yaml"):
    return [
        word.replace("{recipe}", recipe).replace("{}", file) for word in (READERS | PARQUET)[name]
    ]


@pytest.mark.parametrize("name", READERS)
def test_every_kind_of_file_is_read_as_long_as_it_is_whole(name, whole, monkeypatch):
    monkeypatch.chdir(whole)
    done = run(command(name, name))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_named_and_never_called_a_bug(name, whole, monkeypatch):
    monkeypatch.chdir(whole)
    complaints = list(filter(None, (complaint(name, whole, seed) for seed in range(SEEDS))))
    assert complaints == []


@pytest.mark.parametrize("name", PARQUET)
def test_so_is_a_damaged_parquet_file(name, parquet, monkeypatch):
    monkeypatch.chdir(parquet)
    assert run(command(name, name)).exit_code == 0
    complaints = list(filter(None, (complaint(name, parquet, seed) for seed in range(SEEDS))))
    assert complaints == []


def complaint(name, folder, seed):
    """What is wrong with how a command takes a file that is damaged so; nothing if all is well."""
    file = f"damaged-{name}"
    (folder / file).write_bytes(damaged(name, (folder / name).read_bytes(), seed))
    done = run(command(name, file))
    said = done.stderr
    if done.exit_code not in (0, 1, 2) or "bug" in said or "Traceback" in said:
        return f"seed {seed}: {done.exit_code} {said}"
    if done.exit_code and file not in said:
        return f"seed {seed} is not named: {said}"
    return "" if "\x1b" not in done.output else f"seed {seed}: an escape in {done.output!r}"
