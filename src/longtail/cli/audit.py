"""`longtail audit`: how long the tail of some labels is, what to expect, what to try."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli import options
from longtail.cli.command import Command, writing
from longtail.cli.outputs import (
    closing,
    console,
    footer,
    note,
    print_json,
    rich_table,
)
from longtail.cli.progress import status
from longtail.flows.json_text import write_json

if TYPE_CHECKING:
    from rich.table import Table

    from longtail.data import LabelCounts
    from longtail.recipes.audit import Audit
    from longtail.recipes.audit_remedies import Remedy

_COUNTS = ("counts.json", "test_counts.json")
_FILES = ("report.html", "audit.json", *_COUNTS)


@click.command(
    cls=Command,
    files=_FILES,
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
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a table names its columns. By default it does if one is asked "
    'for by name, or called "label", "split" or the like.',
)
@options.output_folder("Folder for report.html, audit.json, counts.json and test_counts.json.")
@options.common
def audit(
    labels: Path,
    test: Path | None,
    column: str | None,
    header: bool | None,
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
    with status("Reading labels", quiet):
        from longtail.data import align_counts
        from longtail.recipes.audit import audit_counts
        from longtail.recipes.audit_remedies import remedies

        place = None if column is None else options.name_or_place(column)
        sets = _read(labels, test, place, header)
        classes, counts = align_counts([part.counts for part in sets])
        found = audit_counts(counts[0], counts[1] if len(counts) > 1 else None, classes)
        tried = remedies(found, *_counts_files(labels, output))
    if output is not None:
        with writing(output) as aside:
            _write(found, tried, classes, counts, aside)
    if as_json:
        print_json(_as_json(found, tried))
    else:
        _show(found, tried, [part.source for part in sets])
    if output is not None:
        names = _FILES[: 2 + len(counts)]
        closing(output, names, as_json=as_json, quiet=quiet)
    elif not as_json:
        said = "\n-o FOLDER writes the counts, and this as report.html and audit.json."
        note(said, as_json=as_json, quiet=quiet)


class _Part(NamedTuple):
    """A set of labels, and where it comes from in words."""

    source: str
    counts: LabelCounts


def _read(
    labels: Path, test: Path | None, column: str | int | None, header: bool | None
) -> list[_Part]:
    """The training set, then the held-out one if there is one."""
    from longtail.data import read_label_counts

    parts = read_label_counts(labels, column, header)
    train = _chosen(parts, labels, ("train", "all"))
    if train is None:
        raise ValueError(
            f"{labels} has no training labels, only {', '.join(parts)}; give the training labels "
            "as LABELS, and these with --test"
        )
    if test is None:
        held_out = _chosen(parts, labels, ("test", "validation"))
    else:
        parts = read_label_counts(test, column, header)
        held_out = _chosen(parts, test, ("test", "validation", "all", "train"))
    return [train, held_out] if held_out else [train]


def _chosen(parts: dict[str, LabelCounts], path: Path, names: tuple[str, ...]) -> _Part | None:
    name = next((name for name in names if name in parts), None)
    if name is None:
        return None
    return _Part(str(path) if name == "all" else f"{path}, its {name} part", parts[name])


def _counts_files(labels: Path, output: Path | None) -> tuple[str, str]:
    """The files of class counts to show in commands: those that are there, if they are."""
    if output is not None:
        train, test = (shlex.quote(str(output / name)) for name in _COUNTS)
        return train, test
    given = labels.suffix.lower() == ".json"
    return (shlex.quote(str(labels)) if given else _COUNTS[0]), _COUNTS[1]


def _as_json(found: Audit, tried: list[Remedy]) -> dict[str, Any]:
    from longtail.recipes.audit_expectations import expectations

    said = {"expect": expectations(found), "try": [asdict(remedy) for remedy in tried]}
    return found.as_json() | said


def _write(
    found: Audit,
    tried: list[Remedy],
    classes: tuple[str, ...],
    counts: list[tuple[int, ...]],
    output: Path,
) -> None:
    from longtail.recipes.audit_page import audit_page
    from longtail.report import write_page

    for name, part in zip(_COUNTS, counts, strict=False):
        write_json(output / name, dict(zip(classes, part, strict=True)))
    write_json(output / "audit.json", _as_json(found, tried))
    page = audit_page(found, counts, tried, footer(), classes)
    write_page(page, output / "report.html")


def _show(found: Audit, tried: list[Remedy], sources: list[str]) -> None:
    from rich.text import Text

    from longtail.recipes.audit_expectations import expectations
    from longtail.recipes.audit_tables import audit_tables

    shown = console()
    for role, source in zip(("train", "test"), sources, strict=False):
        shown.print(Text(f"{role}: {source}"), soft_wrap=True)
    for table in audit_tables(found):
        shown.print(
            rich_table(f"\n{table.title}", table.columns, table.rows, caption=table.caption)
        )
    shown.print(Text("\nWhat to expect", style="bold"))
    for sentence in expectations(found):
        shown.print(_item(sentence))
    if tried:
        shown.print(Text("\nWhat to try", style="bold"))
        shown.print(Text("  (lt is longtail, counts are the training samples of each class)"))
    for remedy in tried:
        shown.print(_item(remedy.why))
        for line in remedy.lines:  # not wrapped: they are there to be copied
            shown.print(Text(f"     {line}", style="cyan"), soft_wrap=True)


def _item(sentence: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("  •"), Text(sentence))
    return grid
