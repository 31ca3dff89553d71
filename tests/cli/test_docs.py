"""docs/command-line.md says what the commands say, and its examples print what it shows."""

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.cli.errors import FAILURE, INTERRUPTED, TERMINATED, USAGE
from longtail.flows.subprocesses import TAKEN

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
# A command and, on the lines after it, what it prints.
SHOWN = re.findall(r"^\$ longtail (.*)\n((?:(?:Error|Hint): .*\n)+)", TEXT, re.M)
COMMANDS = re.findall(r"^\$ (?:.* -m )?longtail ([^>#\n]*)", TEXT, re.M)


def test_the_table_names_every_command_in_its_own_words():
    listed = dict(re.findall(r"^\| `longtail (\w+)` \| (.*) \|$", TEXT, re.M))
    own = {name: command.get_short_help_str(100) for name, command in app.commands.items()}
    own["completion"] = own["completion"].replace("SHELL", "a shell")
    assert listed == own


def test_the_shared_options_are_explained_as_in_the_help():
    listed = dict(re.findall(r"^\| `(?:-\w`, `)?(--[\w-]+)` \| (.*) \|$", TEXT, re.M))
    command = app.commands["doctor"]
    context = click.Context(command, info_name="doctor", **app.context_settings)
    own = {option.opts[-1]: option.help for option in command.get_params(context)}
    assert listed == own


def test_the_exit_codes_are_those_of_the_code():
    listed = [int(code) for code in re.findall(r"^\| (\d+) \| ", TEXT, re.M)]
    assert listed == [0, FAILURE, USAGE, TAKEN, INTERRUPTED, TERMINATED]


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_an_error_is_told_as_it_is_shown(command, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command), prog_name="longtail")
    assert done.exit_code == USAGE
    assert done.stderr == shown


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_can_be_given(command):
    name, *arguments = shlex.split(command)
    if not any(command == shown for shown, _ in SHOWN):
        app.commands[name].make_context(name, arguments)
    assert len(SHOWN) == 3
