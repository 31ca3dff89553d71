"""What went wrong in one sentence and a hint; a traceback only for those who ask for one.

Exit codes: 1 what was asked for failed, 2 wrong usage or a wrong recipe, 75 another process is
writing there, 130 interrupted, 143 ended by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NamedTuple

import click

from longtail.cli.terminal import echo, is_first, rank

FAILURE, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
# torchrun ends all processes when one does; in this many seconds the one that speaks has spoken.
_PATIENCE = 5.0
_LONGEST = 2000  # characters of a sentence
_INSTALLED = "longtail doctor shows what is installed"
_ASK = "--traceback shows where it comes from"


class Interrupted(click.Abort):
    """An interrupt after which there is something to say, and the signal that it was."""

    def __init__(self, hint: str, signal: int = signal.SIGINT) -> None:
        super().__init__(hint)
        self.signal = signal


class ErrorText(NamedTuple):
    """An error as the user sees it."""

    sentence: str
    hint: str
    code: int


def error_text(error: BaseException) -> ErrorText:
    """The error in words. Unexpected errors are said to be bugs."""
    if isinstance(error, click.UsageError):
        path = "longtail" if error.ctx is None else error.ctx.command_path
        return ErrorText(_sentence(error.format_message()), f"{path} --help", USAGE)
    from longtail.flows.train.reading import RecipeError

    if isinstance(error, RecipeError):
        hint = "longtail recipes NAME prints a recipe with every value"
        return ErrorText(str(error), hint, USAGE)
    from longtail.flows.score_sources import CarriedError

    if isinstance(error, CarriedError):
        return ErrorText(str(error), "longtail fix --help says how scores are described", USAGE)
    from longtail.core.probabilities import NotLogitsError

    if isinstance(error, NotLogitsError):
        return ErrorText(str(error), "nothing was adjusted or measured", USAGE)
    if isinstance(error, click.ClickException):
        return ErrorText(_sentence(error.format_message()), _ASK, FAILURE)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        hint = "smaller batches or fewer processes; longtail doctor shows what there is"
        return ErrorText(f"out of memory: {error}".rstrip(": "), hint, FAILURE)
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "torch":
        return ErrorText('this needs torch: pip install "longtail[torch]"', _INSTALLED, FAILURE)
    if isinstance(error, ImportError) and not (error.name or "").startswith("longtail"):
        return ErrorText(str(error), _INSTALLED, FAILURE)
    if isinstance(error, FileNotFoundError):  # as click says of arguments: a wrong one
        return ErrorText(_os_error(error), "check its spelling, and the folder you are in", USAGE)
    if isinstance(error, BlockingIOError):
        from longtail.flows.subprocesses import TAKEN

        return ErrorText(_os_error(error), _ASK, TAKEN)
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "make room, or write elsewhere; longtail doctor shows the room" if full else _ASK
        return ErrorText(_os_error(error), hint, FAILURE)
    # A file or a number can be wrong; and torch's own errors are of devices and networks.
    is_of_torch = type(error).__module__.partition(".")[0] == "torch"
    if is_of_torch or isinstance(error, ValueError | FloatingPointError):
        return ErrorText(str(error), _ASK, FAILURE)
    sentence = f"longtail has a bug: {type(error).__name__}: {error}".rstrip(": ")
    return ErrorText(sentence, f"{_ASK}; please report it with that", FAILURE)


def show_error(error: Exception, arguments: Sequence[str]) -> int:
    """Print the error to standard error, and say which exit code it has."""
    sentence, hint, code = error_text(error)
    sentence = shortened(sentence)
    # Every process of a run meets the same usage error: one of a machine says it. A failure may be
    # that of a single process, so each tells its own.
    if code == USAGE and os.environ.get("LOCAL_RANK", "0") != "0":
        time.sleep(_PATIENCE)
        return code
    if traceback_asked(arguments):
        echo("".join(traceback.format_exception(error)), err=True, nl=False)
        hint = hint.replace(_ASK, "").lstrip("; ")
    where = rank()
    begin = "Error" if where is None else f"Error ({where})"
    echo(f"{begin}: {sentence}", err=True)
    if hint:
        echo(f"Hint: {hint}", err=True)
    return code


def shortened(sentence: str) -> str:
    """A sentence that can be read: of one that lists all a file holds, both ends."""
    if len(sentence) <= _LONGEST:
        return sentence
    return f"{sentence[: 3 * _LONGEST // 4]} … {sentence[-_LONGEST // 4 :]}"


def show_interrupt(error: BaseException) -> int:
    """Say that the command was stopped, and what to do now if that is known."""
    # Of an interrupt click makes an Abort, which has it as its cause.
    signals = (getattr(raised, "signal", None) for raised in (error, error.__cause__))
    code = 128 + next((int(number) for number in signals if number), signal.SIGINT)
    if is_first():
        echo("Interrupted." if code == INTERRUPTED else "Ended by a signal.", err=True)
        if isinstance(error, Interrupted):
            echo(f"Hint: {error}", err=True)
    return code


def traceback_asked(arguments: Sequence[str]) -> bool:
    """Whether tracebacks are wanted.

    The words are looked at, not what click made of them: it may have been click that failed.
    """
    return "--traceback" in arguments or os.environ.get("LONGTAIL_TRACEBACK", "0") not in ("", "0")


def close_quietly() -> None:
    """Nobody reads standard output any more: let what Python still holds for it go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _sentence(message: str) -> str:
    """Click's messages on one line."""
    return " ".join(message.split())


def _os_error(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    about = "" if error.filename is None else f": {error.filename}"
    return f"{error.strerror[:1].lower()}{error.strerror[1:]}{about}"
