"""What every command checks first: options once, no input and no other's files lost."""

import os
import re

import click
import numpy as np
import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.cli.command import Command
from longtail.cli.options import WordOrFile

COMMANDS = sorted(app.commands)


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def options_of(name):
    return [param for param in app.commands[name].params if isinstance(param, click.Option)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_one_of_ours(name):
    assert isinstance(app.commands[name], Command)


ONCE = [
    (name, spelling)
    for name in COMMANDS
    for option in options_of(name)
    if not option.is_flag and not option.multiple
    for spelling in option.opts
]


@pytest.mark.parametrize(("name", "spelling"), ONCE)
def test_an_option_given_twice_is_wrong_usage_that_names_it(name, spelling):
    option = next(each for each in options_of(name) if spelling in each.opts)
    done = run(name, spelling, "first", option.opts[-1], "second")
    assert done.exit_code == 2
    assert f"{'/'.join(option.opts)} is given twice" in done.stderr


@pytest.mark.parametrize("name", ["audit", "fix", "report"])
def test_a_switch_set_both_ways_is_wrong_usage(name):
    done = run(name, "--header", "--no-header")
    assert done.exit_code == 2
    assert "--header/--no-header is given twice" in done.stderr


def test_a_flag_may_be_repeated_and_an_option_for_many_values_too(tmp_path):
    done = run("recipes", "-q", "-q", "--json", "--json")
    assert done.exit_code == 0, done.output
    done = run("compare", "--label", "a=nowhere", "--label", "b=nowhere")
    assert "there is no nowhere" in done.stderr


@pytest.mark.parametrize("name", ["recipes", "train"])
def test_a_key_of_a_recipe_given_twice_is_wrong_usage(name):
    done = run(name, "cifar100-lt-la-quick", "epochs=1", "seed=2", "epochs=3")
    assert done.exit_code == 2
    assert "epochs is given twice" in done.stderr


def test_a_path_of_data_given_in_two_ways_is_wrong_usage(tmp_path):
    given = ["cifar100-lt-la-quick", f"data.path={tmp_path}", "--data", tmp_path, "-o", "run"]
    done = run("train", *given)
    assert done.exit_code == 2
    assert "data.path is given twice" in done.stderr


def reads(param):
    return isinstance(param.type, click.Path | WordOrFile) and param.name != "output"


INPUTS = [
    (name, param.name)
    for name in COMMANDS
    if any(param.name == "output" for param in app.commands[name].params)
    for param in app.commands[name].params
    if reads(param) or param.name == "labels"
]


def words(param, value):
    """A parameter as it is given."""
    if isinstance(param, click.Argument):
        return [str(value)]
    return [param.opts[-1], f"x={value}" if param.multiple else str(value)]


def given_over_an_input(name, input_name, out, path):
    """A command whose input is `path`; other paths that it needs are of another file."""
    command = app.commands[name]
    other = out.parent / "other.npz"
    arguments = [
        word
        for param in command.params
        if param.name == input_name or (isinstance(param, click.Argument) and param.required)
        for word in words(param, path if param.name == input_name else other)
    ]
    return [name, *arguments, "-o", str(out if command.files else out / "taken.safetensors")]


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize(("name", "input_name"), INPUTS)
def test_no_command_writes_over_an_input(tmp_path, name, input_name, link):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "other.npz").write_bytes(b"other")
    for taken in app.commands[name].files or ["taken.safetensors"]:
        (out / taken).write_bytes(b"mine")
        path = out / taken
        if link is not None:
            path = tmp_path / f"link-{taken}"
            link(out / taken, path)
        done = run(*given_over_an_input(name, input_name, out, path))
        assert done.exit_code == 2, done.output
        assert f"{path} is an input" in done.stderr
        assert (out / taken).read_bytes() == b"mine"
    assert not (out / ".longtail").exists()


def test_every_way_to_name_an_input_is_tried():
    """Ten commands' worth of paths: if a command gets another, it is in the list by itself."""
    assert len(INPUTS) >= 20
    assert {name for name, _ in INPUTS} == {
        "audit",
        "compare",
        "features",
        "fit",
        "fix",
        "report",
        "reproduce",
        "split",
        "sweep",
        "train",
    }


@pytest.fixture
def fixed(tmp_path, monkeypatch):
    """A folder with scores, and one that `longtail fix` has written."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), (40, 20, 8))
    logits = random.normal(size=(68, 3)) + 2 * np.eye(3)[labels]
    np.savez("val.npz", logits=logits, labels=labels)
    (tmp_path / "counts.json").write_text("[400, 200, 80]")
    done = fix("-o", "out")
    assert done.exit_code == 0, done.output
    return tmp_path


def fix(*arguments, scores="val.npz"):
    return run("fix", scores, "--kind", "logits", "--counts", "counts.json", *arguments)


def test_a_value_that_happens_to_be_called_like_a_folder_is_no_input(fixed):
    """A metric, a column, a recipe's value: only options that take paths are read from."""
    done = fix("--label-column", "labels", "-o", "labels")
    assert done.exit_code == 0, done.output
    done = fix("--label-column", "labels", "-o", "labels")
    assert done.exit_code == 0, done.output


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_scores_that_a_fix_wrote_are_not_fixed_into_its_own_folder(fixed):
    before = contents(fixed / "out")
    for done in (
        fix("--apply", "out/scores.safetensors", "-o", "out"),
        run("fix", "val.npz", "--kind", "logits", "--with", "out/adjuster.json", "-o", "out"),
        run("report", "out/scores.safetensors", "-o", "out"),
        run("report", "out", "-o", "out"),
        run("compare", "out", "-o", "out"),
    ):
        assert done.exit_code == 2
        assert re.search(r"out/\S+ is an input.* out ", done.stderr)
    assert contents(fixed / "out") == before
    done = run("fix", "val.npz", "--kind", "logits", "--with", "out/adjuster.json", "-o", "more")
    assert done.exit_code == 0, done.output
    assert contents(fixed / "out") == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "counts.json"],
        ["compare", "--label", "a=val.npz"],
        ["demo"],
        ["report", "val.npz"],
    ],
)
def test_the_files_of_another_command_are_not_replaced(fixed, arguments):
    before = contents(fixed / "out")
    done = run(*arguments, "-o", "out")
    assert done.exit_code == 2
    assert "out holds the files of longtail fix, which would be lost" in done.stderr
    assert contents(fixed / "out") == before


def test_a_comparison_and_a_report_may_take_the_place_of_each_other(fixed):
    for arguments in (["compare", "val.npz"], ["report", "val.npz", "--kind", "logits"]):
        done = run(*arguments, "-o", "page")
        assert done.exit_code == 0, done.output
    assert set(contents(fixed / "page")) == {"report.html"}  # the tables were of the comparison


def test_a_folder_of_runs_may_take_the_comparison_of_them(fixed):
    (fixed / "runs").mkdir()
    (fixed / "out").rename(fixed / "runs" / "out")
    for _ in range(2):
        done = run("compare", "runs", "-o", "runs")
        assert done.exit_code == 0, done.output
    done = run("compare", "runs", "-o", "runs/out")
    assert done.exit_code == 2
    assert "holds the files of longtail fix" in done.stderr


def test_what_an_earlier_run_wrote_does_not_stay_beside_what_a_later_one_did(fixed):
    (fixed / "out" / "notes.txt").write_text("mine")
    (fixed / "out" / "adjuster.json").rename(fixed / "kept.json")
    (fixed / "out" / "adjuster.json").write_text("{}")
    done = run("fix", "val.npz", "--kind", "logits", "--with", "kept.json", "-o", "out")
    assert done.exit_code == 0, done.output
    assert (fixed / "out/adjuster.json").read_bytes() == (fixed / "kept.json").read_bytes()
    names = {"adjuster.json", "metrics.json", "report.html", "scores.safetensors", "notes.txt"}
    assert set(contents(fixed / "out")) == names
    assert (fixed / "out" / "notes.txt").read_text() == "mine"


def test_a_run_that_fails_leaves_no_folder_and_no_old_one_changed(fixed):
    (fixed / "bad.npz").write_bytes(b"bad")
    before = contents(fixed / "out")
    for output in ("out", "new/deep"):
        assert fix("-o", output, scores="bad.npz").exit_code == 1
    assert contents(fixed / "out") == before
    assert sorted(path.name for path in (fixed / "out" / ".longtail").iterdir()) == [
        "generation.json",
        "lock",
    ]
    assert not (fixed / "new").exists()


WRITERS = sorted(name for name in COMMANDS if app.commands[name].files)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_the_user_is_never_written_over_and_named(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "um").mkdir()
    (tmp_path / "input.npz").write_bytes(b"")
    command = app.commands[name]
    monkeypatch.setattr(command, "callback", lambda **_: pytest.fail("it was begun"))
    needs = [p for p in command.params if isinstance(p, click.Argument) and p.required]
    for file in command.files:
        (tmp_path / "um" / file).write_text("mine")
        done = run(name, *("input.npz" for _ in needs), "-o", "um")
        assert done.exit_code == 2, done.output
        assert f"{os.path.join('um', file)} is there and was not written" in done.stderr
        assert "take another folder" in done.stderr
        assert (tmp_path / "um" / file).read_text() == "mine"
        (tmp_path / "um" / file).unlink()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
@pytest.mark.parametrize("folder", ["/proc/foo", "/proc/self/x/y"])
def test_an_output_folder_that_cannot_be_made_is_named(tmp_path, folder):
    (tmp_path / "counts.json").write_text("[10, 5]")
    done = run("audit", tmp_path / "counts.json", "-o", folder)
    assert done.exit_code in (1, 2)
    assert f"the folder {folder} cannot be made there" in done.stderr


@pytest.mark.parametrize("name", [n for n in COMMANDS if "output" in str(app.commands[n].params)])
def test_an_empty_output_is_wrong_usage(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(name, "-o", "")
    assert done.exit_code == 2
    assert "it is empty; give the name of a folder or file" in done.stderr
    assert not list(tmp_path.iterdir())
