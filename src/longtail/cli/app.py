"""The group of commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import codecs
import difflib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from types import FrameType
from typing import Any, NoReturn

import click

from longtail.cli.errors import FAILURE, USAGE, close_quietly, shortened, show_error, show_interrupt
from longtail.cli.terminal import ARGUMENTS, echo, is_first

# What a terminal without Unicode shows: the sign of a number stays, what has no like is a `?`.
_PLAINER = "longtail.plainer"
_LIKE = {"−": "-", "\u00a0": " ", "•": "*", "τ": "tau", "±": "+-", "…": "...", "→": "->", "†": "^"}


class App(click.Group):
    """A group whose commands end in an exit code and, at worst, in one sentence and a hint."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; unless it is run by other code, end the process."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
            sys.stdout.flush()  # a reader that is gone should be noticed here
        except BrokenPipeError:
            close_quietly()
            code = FAILURE
        except (click.Abort, KeyboardInterrupt) as error:
            code = show_interrupt(error)
        except Exception as error:
            code = show_error(error, sys.argv[1:] if args is None else args)
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Keep the words of the command, which pages and metrics quote."""
        words = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[ARGUMENTS] = words
        return context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without any word show the help, as an error: a script may have lost its words."""
        if not args and not ctx.resilient_parsing:
            echo(ctx.get_help(), err=True)
            ctx.exit(USAGE)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where there is none of that name."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            meant = f"did you mean {near[0]}?" if near else "there are " + ", ".join(self.commands)
            ctx.fail(f"there is no command {args[0]}; {meant}")
        return super().resolve_command(ctx, args)


def run(app: App) -> NoReturn:
    """Run the app as a program of its own."""
    # Spinning threads slow each other down several times over on a few shared cores. It must be
    # set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAINER)
    warnings.showwarning = lambda message, *_, **__: _warn_once(str(message))
    _raise_on_signals()
    app.main(prog_name="longtail")
    raise AssertionError("main ends the process")


@cache
def _warn_once(sentence: str) -> None:
    """A file is read several times, and each time there is the same to say of it."""
    if is_first():
        echo(f"Warning: {shortened(sentence)}", err=True)


class Terminated(KeyboardInterrupt):
    """Somebody ended the process."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by signal {number}")
        self.signal = number


def _raise_on_signals() -> None:
    """From now on these signals raise Terminated in the main thread; nohup keeps its meaning."""
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> NoReturn:
        if os.getpid() != process:  # a worker that inherited this
            os._exit(128 + number)
        raise Terminated(number)

    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _open_closed_streams() -> None:
    """Standard streams that the caller has closed (`longtail ... >&-`) go nowhere.

    Their numbers are taken too. Else the next file that is opened would get one of them, and
    whatever a library prints would stand in that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # stays open


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """What to write in place of the characters that cannot be."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_LIKE.get(character, "?") for character in wrong), error.end


codecs.register_error(_PLAINER, _plainer)
