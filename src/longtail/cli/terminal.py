"""What reaches the terminal: text from outside, of which nothing commands it, and progress.

Names of classes and files come from strangers. An escape sequence in one could colour, delete or
forge what stands around it, whether the terminal gets it now or from a file later; so can
characters that turn the direction of writing: they are shown, not sent. Progress is shown on
standard error, only on a terminal and only if not quiet, and is gone when done; what is printed on
standard output while a bar runs stays there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

# Control characters but for tabs and ends of lines, marks of direction and of ends of lines, and
# halves of characters, which are what file names that are no UTF-8 come as.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain_text(text: str) -> str:
    r"""The text with each character that commands as its number.

    >>> print(plain_text("a\x1b[31mcat"))
    a\x1b[31mcat
    """
    return _COMMANDS.sub(lambda found: _written(ord(found[0])), text)


def plain_json(text: str) -> str:
    """JSON in which such characters are escaped, as JSON does with most of them by itself."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print the text, as click does."""
    click.echo(plain_text(text), err=err, nl=nl)


def plain_console(**settings: Any) -> Console:
    """A console of rich that prints any text as it is, and only its own colours as colours."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Plain(Console):
        """Whatever is printed, alone or in a table, comes through `render`."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    yield Segment(plain_text(segment.text), segment.style)

    return Plain(markup=False, emoji=False, highlight=False, **settings)


def _written(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def is_first() -> bool:
    """Whether this is the process that prints: the only one, or rank 0."""
    return os.environ.get("RANK", "0") == "0"


def rank() -> str | None:
    """The rank in words for an error of one process among several."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return None
    return f"rank {os.environ.get('RANK', '0')}"


def is_shown(quiet: bool) -> bool:
    """Whether there is anyone to show progress to."""
    return not quiet and is_first() and sys.stderr.isatty()


@contextmanager
def status(what: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """What is being done, for work whose length nobody knows; call it to say something else."""
    if not is_shown(quiet):
        yield lambda what: None
        return
    from rich.text import Text

    with plain_console(stderr=True).status(Text(what)) as shown:
        yield lambda what: shown.update(Text(what))


@contextmanager
def bars(quiet: bool) -> Iterator[Progress]:
    """Several bars, or one that also says something: add_task(what, total=..., said="")."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=plain_console(stderr=True),
        transient=True,
        redirect_stdout=False,  # else results would go to standard error with the bars
        disable=not is_shown(quiet),
    ) as shown:
        yield shown
