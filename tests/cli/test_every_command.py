"""What holds for every command: the same words, exit codes, one sentence, JSON that is JSON."""

import contextlib
import io
import json
import os
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.cli.options import common, output_folder, seed
from longtail.cli.terminal import bars, is_shown, status

COMMANDS = sorted(app.commands)
SHARED = ("as_json", "quiet", "traceback")


@common
@seed
@output_folder("Anywhere.")
@click.command()
def plain():
    """A command with nothing but the shared options."""


def options_of(command):
    return {option.name: option for option in command.params if isinstance(option, click.Option)}


def run(*arguments, **settings):
    return CliRunner().invoke(app, list(map(str, arguments)), **settings)


def the_error(done):
    """The one sentence and its hint; there must be nothing else."""
    assert done.stdout == ""
    sentence, *hint = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    assert len(hint) == 1
    assert hint[0].startswith("Hint: ")
    return sentence, hint[0]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Small files of every sort, in the current folder."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    labels = np.arange(60) % 3
    np.savez("scores.npz", logits=random.normal(size=(60, 3)), labels=labels)
    np.savez("features.npz", features=random.normal(size=(60, 4)).astype("float32"), labels=labels)
    (tmp_path / "counts.json").write_text('{"[red]": 60, "b": 9, "c": 3}')
    (tmp_path / "list.json").write_text("[60, 9, 3]")
    (tmp_path / "garbage.npz").write_bytes(b"garbage")
    (tmp_path / "garbage.safetensors").write_bytes(b"garbage")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_shared_options_are_there_in_the_same_words(name):
    options, expected = options_of(app.commands[name]), options_of(plain)
    for shared in SHARED:
        assert options[shared].opts == expected[shared].opts
        assert options[shared].help == expected[shared].help
    if "seed" in options:
        assert options["seed"].help == expected["seed"].help
    if "output" in options:
        assert options["output"].opts == ["-o", "--output"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_explained_in_sentences(name):
    command = app.commands[name]
    assert command.help
    assert len(command.get_short_help_str(100)) <= 66  # a line of `longtail --help`
    for option in options_of(command).values():
        assert option.help, option.opts
        assert option.help.endswith("."), option.opts


def test_help_of_every_command_answers_without_torch():
    code = (
        "import sys; from longtail.cli import app\n"
        "for name in ('', *app.commands):\n"
        "    app.main([*name.split(), '--help'], prog_name='longtail', standalone_mode=False)\n"
        "assert not {'torch', 'numpy', 'rich', 'msgspec'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: longtail ") == len(COMMANDS) + 1


# For each command a path that is not there or a wrong word, and a file that cannot be read.
WRONG_USAGE = {
    "audit": ["none.csv"],
    "compare": ["none"],
    "completion": ["csh"],
    "demo": ["--trials", "1"],
    "doctor": ["--verbose"],
    "features": ["none", "none", "-o", "f.safetensors"],
    "fit": ["none.npz", "-o", "out"],
    "fix": ["none.npz", "--kind", "logits", "-o", "out"],
    "recipes": ["none"],
    "report": ["none"],
    "reproduce": ["none"],
    "split": ["none", "-o", "out"],
    "sweep": ["cifar100-lt-la-quick", "--data", "none", "-o", "out"],
    "train": ["cifar100-lt-la-quick", "--data", "none", "-o", "out"],
}
FAILURES = {
    "audit": ["garbage.npz"],
    "compare": ["garbage.safetensors"],
    "features": ["garbage.safetensors", "none", "-o", "f.safetensors"],
    "fit": ["garbage.npz", "-o", "out"],
    "fix": ["garbage.npz", "--kind", "logits", "--counts", "list.json", "-o", "out"],
    "report": ["garbage.npz", "--kind", "logits"],
    "split": ["empty", "-o", "out"],
    "train": ["cifar100-lt-la-quick", "--data", "empty", "-o", "out"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_usage_exits_with_2_a_sentence_and_a_hint(files, name):
    done = run(name, *WRONG_USAGE[name])
    assert done.exit_code == 2, done.output
    sentence, _ = the_error(done)
    assert any(word in sentence for word in WRONG_USAGE[name])
    assert not (files / "out").exists()


@pytest.mark.parametrize("name", FAILURES)
def test_a_file_that_cannot_be_read_is_a_sentence_and_no_bug(files, name):
    done = run(name, *FAILURES[name])
    assert done.exit_code == (2 if name == "train" else 1), done.output  # there it is the recipe's
    sentence, _ = the_error(done)
    assert "bug" not in sentence
    assert any(word.partition(".")[0] in sentence for word in FAILURES[name])


RESULTS = {
    "audit": ["counts.json"],
    "completion": ["fish"],
    "doctor": [],
    "fit": ["--list"],
    "fix": ["scores.npz", "--kind", "logits", "--counts", "list.json", "-o", "out"],
    "recipes": [],
    "report": ["scores.npz", "--kind", "logits", "-o", "out"],
}


@pytest.mark.parametrize("name", RESULTS)
def test_json_is_all_there_is_on_standard_output_and_quiet_leaves_only_that(files, name):
    done = run(name, *RESULTS[name], "--json", "--quiet")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)
    assert done.stderr == ""


@pytest.mark.parametrize("name", RESULTS)
def test_text_has_no_escape_codes_away_from_a_terminal(files, name, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    done = run(name, *RESULTS[name])
    assert done.exit_code == 0, done.output
    assert done.stdout
    if name != "completion":
        assert "\x1b" not in done.output


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_progress_is_on_the_terminal_and_leaves_standard_output_alone(files):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "longtail", "audit", "counts.json", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as started:
        os.close(theirs)
        stdout, _ = started.communicate()
    shown = os.read(ours, 65536)
    os.close(ours)
    assert started.returncode == 0
    assert json.loads(stdout)["train"]
    assert b"Reading labels" in shown


@pytest.mark.parametrize(
    ("quiet", "rank", "is_terminal", "expected"),
    [
        (False, "0", True, True),
        (True, "0", True, False),
        (False, "1", True, False),
        (False, "0", False, False),
    ],
)
def test_progress_is_for_the_first_process_on_a_terminal_that_is_not_quiet(
    quiet, rank, is_terminal, expected, monkeypatch
):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    assert is_shown(quiet) is expected
    with bars(quiet) as shown, contextlib.redirect_stdout(io.StringIO()) as printed:
        shown.advance(shown.add_task("[red]", total=2, detail=""), 2)
        print("result")  # noqa: T201
    with status("[red]", quiet) as say:
        say("[blue]")
    assert printed.getvalue() == "result\n"
    assert bool(sys.stderr.getvalue()) is expected


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_other_processes_of_a_run_print_no_results(files, monkeypatch, option):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = run("audit", "counts.json", option)
    assert (done.exit_code, done.output) == (0, "")


def test_a_class_called_as_markup_stays_a_name(files):
    assert "[red]" in run("audit", "counts.json").stdout
