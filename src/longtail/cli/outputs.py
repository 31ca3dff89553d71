"""What commands print and write: results on standard output, files whole or not at all.

Names of classes and files come from outside. They are shown as they are, never read as markup or
as commands to the terminal: the console reads none, and cells of tables are Text.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.terminal import echo, is_first, plain_console, plain_json, plain_text
from longtail.flows.json_text import json_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

ARGUMENTS = "longtail.arguments"
_NARROWEST = 12  # a name of a class or a method in several lines


def command() -> str:
    """The command as it was given, to be shown in a page and to be copied."""
    context = click.get_current_context(silent=True)
    arguments = sys.argv[1:] if context is None else context.meta.get(ARGUMENTS, sys.argv[1:])
    return shlex.join(["longtail", *arguments])


def print_json(value: Any) -> None:
    """A result as JSON on standard output, the only thing there."""
    if is_first():
        can_show_all = (sys.stdout.encoding or "").lower().startswith("utf")
        click.echo(plain_json(json_text(value, ascii_only=not can_show_all)), nl=False)


def console() -> Console:
    """Where text results go: standard output, without colours if that is no terminal."""
    return plain_console(quiet=not is_first())


def rich_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    caption: str = "",
    left: int = 1,
) -> Table:
    """A table of names and numbers; the first `left` columns are names, the others numbers.

    Where the terminal is narrow names take several lines, and numbers only if nothing else helps.
    """
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    # Here too, since it changes how wide they are.
    cells = [
        [Text(plain_text(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows
    ]
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), title_justify="left", caption_justify="left")
    table.title = Text(title, style="table.title") if title else None
    table.caption = Text(caption, style="table.caption") if caption else None
    names, numbers = columns[:left], columns[left:]
    widest = [
        max(
            *(Text(line).cell_len for line in name.split("\n")),
            *(row[at].cell_len for row in cells),
            0,
        )
        for at, name in enumerate(numbers, left)
    ]
    room = console().width - sum(widest) - 2 * len(columns) - 1
    fits = room >= _NARROWEST * len(names)
    for name in names:
        table.add_column(Text(name), overflow="fold", min_width=_NARROWEST if fits else None)
    for name in numbers:
        table.add_column(Text(name), overflow="fold", justify="right", no_wrap=fits)
    for row in cells:
        table.add_row(*row)
    return table


def closing(folder: Path, names: Iterable[str], *, as_json: bool, quiet: bool) -> None:
    """The last line of a command that wrote files."""
    note(f"\nIn {folder}: {', '.join(names)}", as_json=as_json, quiet=quiet)


def note(text: str, *, as_json: bool, quiet: bool) -> None:
    """What helps but is no result: after the tables, or on standard error beside JSON."""
    if is_first() and not quiet:
        echo(text, err=as_json)
