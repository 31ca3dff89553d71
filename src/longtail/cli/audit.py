"""`longtail audit`: how long the tail of some labels is, what to expect, what to try."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options, terminal
from longtail.cli.command import Command
from longtail.flows import file_names

if TYPE_CHECKING:
    from rich.table import Table

    from longtail.core import GroupEdges
    from longtail.flows.audit import AuditResult


@click.command(
    cls=Command,
    files=file_names.AUDIT,
    short_help="Say how long the tail of some labels is, and what to try.",
)
@click.argument("labels", type=options.INPUT)
@click.option(
    "--test",
    type=options.INPUT,
    help="Held-out labels to compare with; by default those that LABELS itself holds.",
)
@click.option(
    "--column",
    help="The column of a table, by name or by place counted from 0, or the array of an .npz.",
)
@options.header('if one is asked for by name, or called "label", "split" or the like')
@options.groups()
@options.output_folder("Folder for report.html, audit.json, counts.json and test_counts.json.")
@options.common
def audit(
    labels: Path,
    test: Path | None,
    column: str | None,
    header: bool | None,
    groups: GroupEdges | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Say how long the tail of LABELS is, what to expect and what to try.

    LABELS is a table with a column of labels (.csv, .tsv, also .gz; .parquet), a list whose lines
    end in a label (.txt), an array of labels (.npy, .npz), class counts (.json: a list, or an
    object from class to count), or a folder with a folder for each class in it, or in its train,
    val and test.
    """
    with terminal.status("Reading labels", quiet):
        from longtail.flows.audit import audit as audit_labels
        from longtail.report import save

        array_or_column = None if column is None else options.name_or_place(column)
        result = audit_labels(
            labels, test=test, column=array_or_column, header=header, groups=groups
        )
        files = _counts_files(labels, output)
        result = replace(result, counts_files=files, command=terminal.command())
    if output is not None:
        with terminal.writing(output) as aside:
            names = (save(result, aside).name, *result.write(aside))
    if as_json:
        terminal.print_json(result.as_json())
    else:
        _show(result)
    if output is not None:
        terminal.closing(output, names, as_json=as_json, quiet=quiet)
    elif not as_json:
        hint = "\n-o FOLDER writes the counts, and this as report.html and audit.json."
        terminal.note(hint, as_json=as_json, quiet=quiet)


def _counts_files(labels: Path, output: Path | None) -> tuple[str, str]:
    """The files of class counts to show in commands: those that are there, if they are."""
    if output is not None:
        train, test = (shlex.quote(str(output / name)) for name in file_names.COUNTS)
        return train, test
    is_counts = labels.suffix.lower() == ".json"
    return (shlex.quote(str(labels)) if is_counts else file_names.COUNTS[0]), file_names.COUNTS[1]


def _show(result: AuditResult) -> None:
    from rich.text import Text

    from longtail.report.pages.audit import audit_tables, expectations, why

    shown = terminal.console()
    for role, source in zip(("train", "test"), result.sources, strict=False):
        shown.print(Text(f"{role}: {source}"), soft_wrap=True)
    for title, table in audit_tables(result):
        shown.print(terminal.report_table(f"\n{title}", table))
    shown.print(Text("\nWhat to expect", style="bold"))
    for sentence in expectations(result):
        shown.print(_item(sentence))
    if result.remedies:
        shown.print(Text("\nWhat to try", style="bold"))
        shown.print(Text("  (lt is longtail, counts are the training samples of each class)"))
    for remedy in result.remedies:
        shown.print(_item(why(result, remedy)))
        for line in filter(None, (remedy.command, remedy.python)):  # not wrapped: to be copied
            shown.print(Text(f"     {line}", style="cyan"), soft_wrap=True)


def _item(sentence: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("  •"), Text(sentence))
    return grid
