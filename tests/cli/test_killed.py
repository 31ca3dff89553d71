"""Commands that are killed, ended or started twice leave one generation of files, and whole."""

import os
import random
import signal
from glob import glob

import pytest
from click.testing import CliRunner

from cli.killed import (
    RUNS,
    SERVER,
    Killing,
    fill_the_disk,
    hang_up,
    kill,
    stop_halfway,
    term,
    visible,
    wait,
)
from longtail.cli import app

OLD = b"<title>longtail fix</title>"  # a page of longtail is known by it


@pytest.fixture(scope="module")
def killing(tmp_path_factory):
    return Killing(tmp_path_factory.mktemp("killed"), "compare")


@pytest.fixture
def old(tmp_path):
    """A folder with the files of a `longtail fix`."""
    (tmp_path / "out" / ".longtail").mkdir(parents=True)
    for name in ("report.html", "metrics.json", "scores.safetensors", "adjuster.json"):
        (tmp_path / "out" / name).write_bytes(OLD)
    (tmp_path / "val.npz").write_text("")
    return tmp_path


def is_old(place):
    return set(visible(place / "out").values()) == {OLD} and len(visible(place / "out")) == 4


def test_a_run_that_is_killed_leaves_the_old_files_or_the_new(killing):
    chance = random.Random(0)
    for _ in range(4):
        left = killing.kill_at(chance.uniform(0, killing.seconds))
        assert left in ("old", "new", "marked, then new")
    for _ in range(3):
        assert killing.kill_when_placed() in ("new", "marked, then new")


def halfway(place, how):
    """The exit code of a command that does something when half is written, and what it says."""
    process = SERVER.Process(target=stop_halfway, args=(str(place), how, str(place / "said")))
    process.start()
    process.join()
    return process.exitcode, (place / "said").read_text().strip()


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (term, 143, "Ended by a signal."),
        (hang_up, 129, "Ended by a signal."),
        (fill_the_disk, 1, "Error: file too large"),
    ],
)
def test_what_stops_a_command_halfway_leaves_the_old_files_and_no_others(old, how, code, said):
    ended, told = halfway(old, how)
    assert ended == code
    assert told.startswith(said)
    assert is_old(old)
    assert sorted(path.name for path in old.iterdir()) == ["out", "said", "val.npz"]
    assert not list((old / "out").glob(".longtail/*"))


def test_what_a_killed_run_left_is_removed_by_the_next(old):
    assert halfway(old, kill)[0] == -signal.SIGKILL
    hidden = old / "out" / ".longtail"
    assert len(list(hidden.glob("writing-*"))) == 1
    assert is_old(old)
    assert halfway(old, print) == (0, "")
    assert set(visible(old / "out")) == {"report.html", "metrics.json"}
    assert sorted(os.listdir(hidden)) == ["generation.json", "lock"]


def test_of_two_runs_into_one_folder_the_second_is_refused_in_a_sentence(old, monkeypatch):
    said = str(old / "said")
    first = SERVER.Process(target=stop_halfway, args=(str(old), wait, said))
    first.start()
    while not glob(str(old / "out/.longtail/writing-*/report.html")):  # it minds no lost folder
        assert first.is_alive()
    monkeypatch.chdir(old)
    second = CliRunner().invoke(app, [*RUNS["fix"][0][:4], "-o", "out"])
    (old / "go on").touch()
    first.join()
    assert second.exit_code == 75
    assert second.stderr.startswith(
        f"Error: another longtail (process {first.pid}) is writing to out; wait until it has "
        "ended, or take another folder\n"
    )
    assert first.exitcode == 0
    assert set(visible(old / "out")) == {"report.html", "metrics.json"}
