"""What reaches the terminal: results, progress, and text from outside, which commands nothing.

Names of classes and files come from strangers: they are shown as plain text and never read as
markup. Results go to standard output. Progress is shown on standard error, only on a terminal and
only if not quiet, and is gone when done; what is printed on standard output while a bar runs stays.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.command import Command
from longtail.flows.generation import generation
from longtail.flows.results import json_text
from longtail.plain_text import plain_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

    from longtail.report import Table as ReportTable

ARGUMENTS = "longtail.arguments"
_NUMBER = 6  # of a number with its interval in several lines
_NARROWEST = 12  # a name of a class or a method in several lines


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
    """What is being done, for work of unknown length; call it to say something else."""
    if not is_shown(quiet):
        yield lambda what: None
        return
    from rich.text import Text

    with plain_console(stderr=True).status(Text(what)) as shown:
        yield lambda what: shown.update(Text(what))


@contextmanager
def bars(quiet: bool) -> Iterator[Progress]:
    """Several bars, or one that also says something: add_task(what, total=..., detail="")."""
    from rich import progress

    described, detail = "{task.description}", "{task.fields[detail]}"
    with progress.Progress(
        progress.TextColumn(described, markup=False),
        *(progress.BarColumn(), progress.MofNCompleteColumn()),
        progress.TextColumn(detail, markup=False),
        *(progress.TimeElapsedColumn(), progress.TimeRemainingColumn()),
        console=plain_console(stderr=True),
        transient=True,
        redirect_stdout=False,  # else results would go to standard error with the bars
        disable=not is_shown(quiet),
    ) as shown:
        yield shown


def command() -> str:
    """The command as it was given, to be shown in a page and to be copied."""
    context = click.get_current_context(silent=True)
    arguments = sys.argv[1:] if context is None else context.meta.get(ARGUMENTS, sys.argv[1:])
    return shlex.join(["longtail", *arguments])


def print_json(value: Any) -> None:
    """A result as JSON on standard output, the only thing there."""
    if is_first():
        can_show_all = (sys.stdout.encoding or "").lower().startswith("utf")
        click.echo(json_text(value, ascii_only=not can_show_all), nl=False)


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
    whole_words: bool = False,
) -> Table:
    """A table of names and numbers; the first `left` columns are names, the others numbers.

    Where the terminal is narrow names take several lines, and numbers only if nothing else helps;
    with `whole_words` numbers do before a word of the first column is broken.
    """
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    # Here too, since it changes how wide they are.
    cells = [[Text(plain_text(c)) if isinstance(c, str) else c for c in row] for row in rows]
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), title_justify="left", caption_justify="left")
    table.title = Text(title, style="table.title") if title else None
    table.caption = Text(caption, style="table.caption") if caption else None
    names, numbers = columns[:left], columns[left:]
    widest = [
        max(
            [
                *(Text(line).cell_len for line in name.split("\n")),
                *(row[at].cell_len for row in cells),
            ]
        )
        for at, name in enumerate(numbers, left)
    ]
    room = console().width - sum(widest) - 2 * len(columns) - 1
    fits = room >= _NARROWEST * len(names)
    words = [word for row in cells if whole_words for word in row[0].plain.split()]
    whole = min(
        max([_NARROWEST, *(Text(word).cell_len for word in words)]),
        max((row[0].cell_len for row in cells), default=_NARROWEST),
    )
    rest = console().width - whole - 2 * len(columns) - 1
    is_left = whole_words and not fits and rest >= _NUMBER * len(numbers)
    for name in names:
        least, width = (_NARROWEST if fits else None), (whole if is_left else None)
        table.add_column(Text(name), overflow="fold", min_width=least, width=width)
    for name in numbers:
        table.add_column(Text(name), overflow="fold", justify="right", no_wrap=fits)
    for row in cells:
        table.add_row(*row)
    return table


def report_table(title: str, table: ReportTable) -> Table:
    """A table of a page."""
    rows = [[str(cell) for cell in row] for row in table.rows]
    return rich_table(title, [column.name for column in table.columns], rows, caption=table.caption)


def closing(folder: Path, names: Iterable[str], *, as_json: bool, quiet: bool) -> None:
    """The last line of a command that wrote files."""
    note(f"\nIn {folder}: {', '.join(names)}", as_json=as_json, quiet=quiet)


def note(text: str, *, as_json: bool, quiet: bool) -> None:
    """What helps but is no result: after the tables, or on standard error beside JSON."""
    if is_first() and not quiet:
        echo(text, err=as_json)


def writing(output: Path) -> AbstractContextManager[Path]:
    """A folder for the files of the running command; they go to the output folder together."""
    running = click.get_current_context().command
    assert isinstance(running, Command)
    return generation(output, running.kind, running.files)
