"""How errors end: codes, sentences, hints, tracebacks on request, interrupts, closed pipes."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from longtail.cli import app
from longtail.cli.errors import error_text
from longtail.flows.train.reading import RecipeError


@pytest.fixture
def failing(monkeypatch):
    """Run `longtail recipes` as if it raised this."""

    def fail(error, *arguments, **settings):
        def callback(**_):
            raise error

        monkeypatch.setattr(app.commands["recipes"], "callback", callback)
        return CliRunner().invoke(app, ["recipes", *arguments], **settings)

    return fail


class OutOfMemoryError(RuntimeError):
    """As torch calls its own."""


class TorchError(RuntimeError):
    __module__ = "torch.distributed"


@pytest.mark.parametrize(
    ("error", "code", "sentence", "hint"),
    [
        (click.UsageError("no"), 2, "no", "longtail --help"),
        (RecipeError("no key"), 2, "no key", "longtail recipes NAME"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "no such file: x.csv", "spelling"),
        (FileNotFoundError("there is no x"), 2, "there is no x", "spelling"),
        (PermissionError(13, "Permission denied", "x"), 1, "permission denied: x", "--traceback"),
        (OSError(28, "No space left on device"), 1, "no space left on device", "make room"),
        (ValueError("too few"), 1, "too few", "--traceback"),
        (FloatingPointError("diverged"), 1, "diverged", "--traceback"),
        (
            ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"),
            1,
            'this needs torch: pip install "longtail[torch]"',
            "longtail doctor",
        ),
        (ImportError("needs pyarrow"), 1, "needs pyarrow", "longtail doctor"),
        (
            ImportError("cannot import x", name="longtail.core"),
            1,
            "longtail has a bug: ImportError: cannot import x",
            "please report it",
        ),
        (MemoryError(), 1, "out of memory", "smaller batches"),
        (OutOfMemoryError("8 GB"), 1, "out of memory: 8 GB", "smaller batches"),
        (TorchError("timeout"), 1, "timeout", "--traceback"),
        (click.ClickException("no"), 1, "no", "--traceback"),
        (KeyError("a"), 1, "longtail has a bug: KeyError: 'a'", "please report it"),
        (RuntimeError(), 1, "longtail has a bug: RuntimeError", "please report it"),
    ],
)
def test_an_error_has_a_code_a_sentence_and_a_hint(error, code, sentence, hint):
    found = error_text(error)
    assert (found.code, found.sentence) == (code, sentence)
    assert hint in found.hint


@pytest.mark.parametrize("asked", [(["--traceback"], {}), ([], {"LONGTAIL_TRACEBACK": "1"})])
def test_a_traceback_is_shown_to_those_who_ask(failing, asked):
    arguments, environment = asked
    done = failing(KeyError("a"), *arguments, env=environment)
    assert done.exit_code == 1
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith(
        "Error: longtail has a bug: KeyError: 'a'\nHint: please report it with that\n"
    )


@pytest.mark.parametrize("environment", [{}, {"LONGTAIL_TRACEBACK": "0"}])
def test_no_traceback_is_shown_to_others(failing, environment):
    done = failing(KeyError("a"), env=environment)
    assert done.exit_code == 1
    assert "Traceback (" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence", "hint"),
    [
        (["dmeo"], "there is no command dmeo; did you mean demo?", "longtail --help"),
        (["xyzzy"], "there is no command xyzzy; there are audit, compare,", "longtail --help"),
        (["fix", "--taget", "uniform"], "'--target'", "longtail fix --help"),
        (["--verison"], "'--version'", "longtail --help"),
        (["fix"], "Missing argument 'SCORES'", "longtail fix --help"),
        (["recipes", "cifar100-lt-lad"], "did you mean cifar100-lt-lade", "longtail recipes NAME"),
    ],
)
def test_what_does_not_exist_is_told_with_the_nearest(arguments, sentence, hint):
    done = CliRunner().invoke(app, arguments, prog_name="longtail")
    assert done.exit_code == 2
    told_sentence, told_hint = done.stderr.splitlines()
    assert sentence in told_sentence
    assert told_hint.startswith(f"Hint: {hint}")


def test_without_any_word_the_help_is_shown_as_an_error():
    done = CliRunner().invoke(app, [], prog_name="longtail")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: longtail [OPTIONS] COMMAND")


def test_an_interrupt_exits_with_130(failing):
    done = failing(KeyboardInterrupt())
    assert done.exit_code == 130
    assert done.stderr.strip() == "Interrupted."


def test_of_several_processes_one_tells_wrong_usage_and_each_its_own_failure(failing, monkeypatch):
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    others = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    done = failing(RecipeError("no key"), env=others)
    assert (done.exit_code, done.output) == (2, "")
    assert waited == [5.0]  # ending first would make torchrun end the one that speaks
    done = failing(ValueError("my disk"), env=others)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error (rank 1): my disk\n")
    done = failing(RecipeError("no key"), env=others | {"RANK": "2", "LOCAL_RANK": "0"})
    assert done.stderr.startswith("Error (rank 2): no key\n")  # the first of another machine


def program(code, **settings):
    """The command line as a process of its own, after some code."""
    command = [sys.executable, "-c", f"{code}\nfrom longtail.cli import main; main()", "recipes"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **settings)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_real_interrupt_exits_with_130_and_says_so():
    code = (
        "import os, signal; from longtail.cli import app\n"
        # A process that was started in the background ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "app.commands['recipes'].callback = lambda **_: os.kill(os.getpid(), signal.SIGINT)"
    )
    started = program(code)
    _, stderr = started.communicate()
    assert started.returncode == 130
    assert stderr.strip() == "Interrupted."


def test_a_reader_that_is_gone_is_no_reason_to_complain():
    started = program("", stdout=subprocess.PIPE)
    started.stdout.close()
    stderr = started.stderr.read()
    assert started.wait() == 1
    assert stderr == ""


def test_a_warning_is_a_sentence_and_an_ascii_terminal_no_failure():
    code = (
        "import warnings; from longtail.cli import app\n"
        "def callback(**_):\n"
        "    warnings.warn('slow'); print('−3 ± τ é')\n"
        "app.commands['recipes'].callback = callback"
    )
    started = program(code, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    stdout, stderr = started.communicate()
    assert (started.returncode, stdout, stderr) == (0, "-3 +- tau ?\n", "Warning: slow\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is that of POSIX")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [["recipes"], ["recipes", "--json"], ["--help"]])
def test_where_a_stream_is_closed_the_work_is_done_without_a_word(words, closed):
    command = ["sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-m", "longtail", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is that of POSIX")
def test_what_is_printed_to_a_closed_stream_never_stands_in_a_file(tmp_path):
    code = (
        "import os; from longtail.cli import app, main\n"
        "def callback(**_):\n"
        f"    with open({str(tmp_path / 'file')!r}, 'w') as file:\n"
        "        os.write(1, b'printed by a library'); file.write('whole')\n"
        "app.commands['recipes'].callback = callback\n"
        "main()"
    )
    command = ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", code, "recipes"]
    assert subprocess.run(command, check=False).returncode == 0
    assert (tmp_path / "file").read_text() == "whole"


def test_a_sentence_of_any_length_is_shown_so_that_it_can_be_read(failing):
    long = ValueError(f"a.safetensors has no logits, only {', '.join(map(str, range(10**5)))}; x")
    done = failing(long)
    assert done.exit_code == 1
    assert len(done.stderr) < 2200
    assert done.stderr.startswith("Error: a.safetensors has no logits, only 0, 1, 2, ")
    assert " … " in done.stderr
    assert done.stderr.splitlines()[0].endswith(", 99999; x")
