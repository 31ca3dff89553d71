"""Progress on standard error: only on a terminal, only if not quiet, gone when done.

Nothing is ever shown on standard output, and what is printed there while a bar runs stays there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from longtail.cli.plain_text import is_first, plain_console

if TYPE_CHECKING:
    from rich.progress import Progress


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
