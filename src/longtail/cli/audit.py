"""`longtail audit`: how long the tail of some labels is, what to expect, what to try."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from rich.table import Table

    from longtail.data.label_files import LabelCounts
    from longtail.recipes.audit import Audit
    from longtail.recipes.audit_remedies import Remedy
    from longtail.recipes.audit_tables import TextTable

_COUNTS = ("counts.json", "test_counts.json")


@click.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option(
    "--test",
    type=click.Path(path_type=Path),
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
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not tables.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.html, audit.json, counts.json and test_counts.json.",
)
def audit(
    labels: Path,
    test: Path | None,
    column: str | None,
    header: bool | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Say how long the tail of LABELS is, what to expect and what to try.

    LABELS is a table with a column of labels (.csv, .tsv, also .gz; .parquet), a list whose lines
    end in a label (.txt), an array of labels (.npy, .npz), class counts (.json: a list, or an
    object from class to count), or a folder with a folder for each class in it, or in its train,
    val and test.
    """
    from longtail.data.label_files import align_counts
    from longtail.recipes.audit import audit_counts
    from longtail.recipes.audit_remedies import remedies

    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    sets = _read(labels, test, int(column) if column and column.isdigit() else column, header)
    classes, counts = align_counts([part.counts for part in sets])
    found = audit_counts(counts[0], counts[1] if len(counts) > 1 else None, classes)
    tried = remedies(found, *_counts_files(labels, output))
    if as_json:
        click.echo(_as_json(found, tried), nl=False)
    else:
        _show(found, tried, [part.source for part in sets])
    if output is not None:
        others = [] if test is None else ["--test", str(test)]
        others += [] if column is None else ["--column", column]
        command = shlex.join(["longtail", "audit", str(labels), *others])
        _write(found, tried, classes, counts, output, command)
        names = ", ".join(("report.html", "audit.json", *_COUNTS[: len(counts)]))
        click.echo(f"\nIn {output}: {names}", err=as_json)
    elif not as_json:
        click.echo("\n-o DIR writes the counts, and this as report.html and audit.json.")


class _Part(NamedTuple):
    """A set of labels, and where it comes from in words."""

    source: str
    counts: LabelCounts


def _read(
    labels: Path, test: Path | None, column: str | int | None, header: bool | None
) -> list[_Part]:
    """The training set, then the held-out one if there is one."""
    from longtail.data.label_files import read_label_counts

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


def _as_json(found: Audit, tried: list[Remedy]) -> str:
    from longtail.recipes.audit_expectations import expectations

    said = {"expect": expectations(found), "try": [asdict(remedy) for remedy in tried]}
    return json.dumps(found.as_json() | said, indent=2, ensure_ascii=False) + "\n"


def _write(
    found: Audit,
    tried: list[Remedy],
    classes: tuple[str, ...],
    counts: list[tuple[int, ...]],
    output: Path,
    command: str,
) -> None:
    from longtail import __version__
    from longtail.recipes.audit_page import audit_page
    from longtail.report import Footer, write_page

    for name, part in zip(_COUNTS, counts, strict=False):
        by_class = dict(zip(classes, part, strict=True))
        text = json.dumps(by_class, indent=2, ensure_ascii=False)
        (output / name).write_text(f"{text}\n", encoding="utf-8")
    (output / "audit.json").write_text(_as_json(found, tried), encoding="utf-8")
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(audit_page(found, counts, tried, footer), output / "report.html")


def _show(found: Audit, tried: list[Remedy], sources: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    from longtail.recipes.audit_expectations import expectations
    from longtail.recipes.audit_tables import audit_tables

    console = Console()
    for role, source in zip(("train", "test"), sources, strict=False):
        console.print(Text(f"{role}: {source}"), soft_wrap=True)
    for table in audit_tables(found):
        console.print(_rich_table(table))
    console.print(Text("\nWhat to expect", style="bold"))
    for sentence in expectations(found):
        console.print(_item(sentence))
    if tried:
        console.print(Text("\nWhat to try", style="bold"))
        console.print(Text("  (lt is longtail, counts are the training samples of each class)"))
    for remedy in tried:
        console.print(_item(remedy.why))
        for line in remedy.lines:  # not wrapped: they are there to be copied
            console.print(Text(f"     {line}", style="cyan"), soft_wrap=True)


def _rich_table(table: TextTable) -> Table:
    from rich.table import Table
    from rich.text import Text

    made = Table(title=f"\n{table.title}", title_justify="left", caption_justify="left")
    made.caption = table.caption or None
    for at, name in enumerate(table.columns):
        made.add_column(name, justify="right" if at else "left", no_wrap=not at, overflow="fold")
    for row in table.rows:
        made.add_row(*map(Text, row))  # as Text, a class called "[red]" stays a name
    return made


def _item(sentence: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("  •"), Text(sentence))
    return grid
