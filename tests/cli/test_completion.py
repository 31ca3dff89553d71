"""Completion: the scripts, and what shells are told; all of it without torch."""

import json
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from longtail.cli import app


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_calls_longtail(shell):
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert f"_LONGTAIL_COMPLETE={shell}_complete" in done.stdout
    assert "longtail" in done.stdout


def test_as_json_it_says_where_the_script_goes():
    said = json.loads(CliRunner().invoke(app, ["completion", "zsh", "--json"]).stdout)
    assert said["shell"] == "zsh"
    assert "compinit" in said["install"]
    assert said["script"].startswith("#compdef longtail")


def test_the_help_has_the_lines_to_copy_whole():
    shown = CliRunner().invoke(app, ["completion", "--help"]).stdout
    assert "  longtail completion bash > ~/.longtail-complete.bash\n" in shown
    assert "\\b" not in shown


def completed(*words):
    """What bash is told of the last word, and whether torch was imported for it."""
    code = (
        "import sys; from longtail.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    asked = {
        "_LONGTAIL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("longtail", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_recipes_files_and_options_are_completed_without_torch():
    assert completed("co") == ["plain,compare", "plain,completion"]
    assert "plain,cifar100-lt-lade" in completed("recipes", "cifar100-lt-la")
    assert "plain,cifar100-lt-lade" in completed("train", "cifar100-lt-la")
    assert completed("train", "my") == ["file,my"]
    assert completed("fix", "--carried", "m") == ["plain,measure"]
    assert completed("fix", "--target", "my") == ["file,my"]
    assert "plain,--traceback" in completed("doctor", "--")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_takes_the_script(tmp_path):
    script = CliRunner().invoke(app, ["completion", "bash"]).stdout
    (tmp_path / "script").write_text(script)
    command = ["bash", "-c", f"source {tmp_path / 'script'} && complete -p longtail"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "-F _longtail_completion longtail" in done.stdout
