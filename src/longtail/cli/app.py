"""The group of commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

import click

from longtail.cli.errors import (
    FAILURE,
    USAGE,
    close_quietly,
    shortened,
    show_error,
    show_interrupt,
)
from longtail.cli.outputs import ARGUMENTS
from longtail.cli.plain_text import echo
from longtail.cli.plainer import PLAINER
from longtail.cli.processes import is_first
from longtail.cli.signals import raise_on_signals
from longtail.cli.streams import open_closed_streams


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
        sys.exit(self._run(args, prog_name, complete_var, extra))

    def _run(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        extra: dict[str, Any],
    ) -> int:
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
            sys.stdout.flush()  # a reader that is gone should be noticed here
        except BrokenPipeError:
            close_quietly()
            return FAILURE
        except (click.Abort, KeyboardInterrupt) as error:
            return show_interrupt(error)
        except Exception as error:
            return show_error(error, sys.argv[1:] if args is None else args)
        return code if isinstance(code, int) else 0

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> click.Context:
        """Keep the words of the command, which pages and metrics quote."""
        given = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[ARGUMENTS] = given
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
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=PLAINER)
    warnings.showwarning = _show_warning  # type: ignore[assignment]  # it needs only the text
    raise_on_signals()
    app.main(prog_name="longtail")
    raise AssertionError("main ends the process")


def _show_warning(message: Warning | str, *_: Any) -> None:
    """A warning is a sentence too."""
    _say_once(str(message))


@cache
def _say_once(sentence: str) -> None:
    """A file is read several times, and each time there is the same to say of it."""
    if is_first():
        echo(f"Warning: {shortened(sentence)}", err=True)
