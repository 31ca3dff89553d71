"""`longtail compare`: methods beside each other over many runs, and what of it is noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.options import INPUT
from longtail.cli.terminal import closing, command, console, print_json, rich_table, status, writing
from longtail.flows import file_names

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from longtail.core import GroupEdges
    from longtail.flows.compare import CompareResult
    from longtail.flows.compare_sets import ComparedSet


# What a narrow terminal can do without, the first the soonest.
_LEFT_OUT_FIRST = ("rank", "accuracy", "worst", "NLL", "ECE")
_NAMES = 12  # columns of the terminal for the names of methods


@click.command(
    cls=Command,
    files=file_names.COMPARE,
    kind="report",
    short_help="Compare methods over many runs, and say what is noise.",
)
@click.argument("paths", nargs=-1, type=INPUT, metavar="PATH...")
@click.option(
    "--label",
    "labels",
    multiple=True,
    type=options.NameAndPath(),
    metavar="NAME=PATH",
    help="Runs in PATH are of the method NAME. May be given often, also with one NAME.",
)
@options.word_or_file(
    "--target",
    ("uniform", "none"),
    "The prior to measure under; scores that say what they carry are moved to it. FILE is a "
    "JSON list of weights, one a class; none leaves scores and samples as they are.",
)
@click.option("--by", metavar="METRIC", help="What methods are ordered by: balanced_accuracy, ...")
@options.groups("those of the runs where they agree, else many=100,few=20")
@options.output_folder("Folder for report.html, table.md, table.tex and comparison.json.")
@options.common
def compare(
    paths: tuple[Path, ...],
    labels: tuple[tuple[str, Path], ...],
    target: str | Path,
    by: str | None,
    groups: GroupEdges | None,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare the runs in PATHs: methods by metrics, with intervals, ranks and what is noise.

    PATH is a folder of longtail train, fix or fit, a file of scores with labels (.safetensors or
    .npz), or a folder with these in it. Runs that differ only in their seed are one method.
    """
    if not paths and not labels:
        raise click.UsageError("give run folders or files of scores to compare")
    with status("Reading", quiet) as say:
        from longtail.flows import compare as flow
        from longtail.flows.compare_runs import BY_KEY

        if by is not None and by not in BY_KEY:
            raise click.UsageError(f"--by is one of {', '.join(BY_KEY)}; got {by!r}")

        def progress(what: str) -> None:
            say(f"Measuring: {what}")

        result = flow.compare(
            paths, names=labels, target=target, by=by, groups=groups, progress=progress
        )
    present(result, output, as_json=as_json, quiet=quiet)


def present(result: CompareResult, output: Path | None, *, as_json: bool, quiet: bool) -> None:
    """Print a comparison, and write its files if there is a folder for them."""
    from longtail.report import save
    from longtail.report.pages.compare import write_tables

    if output is not None:
        result = replace(result, command=command())
        with writing(output) as aside:
            result.write(aside)
            write_tables(result, aside)
            save(result, aside)
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    if output is not None:
        closing(output, file_names.COMPARE, as_json=as_json, quiet=quiet)


def _show(result: CompareResult) -> None:
    from rich.text import Text

    from longtail.report.pages import compare_text as text

    out = console()
    for table in result.sets:
        out.print(_table(table, result))
        out.print(Text(text.headline(table), style="bold"))
        for sentence in (*text.what_would_tell(table), *text.what_varies(table)):
            out.print(f"• {sentence}")
    if result.ranks is not None:
        out.print(f"\n{text.average_ranks(result.ranks)}")
    for note in text.notes(result):
        out.print(f"• {note}")


def _table(table: ComparedSet, result: CompareResult) -> Table:
    """Narrow enough for 80 columns: few intervals and no column too many, the files have all."""
    from longtail.report.pages import compare_text as text

    shown = _columns(table)
    left_out = []
    for key in _LEFT_OUT_FIRST:
        if _width(shown) <= console().width:
            break
        if key in shown and key != table.by.short:
            del shown[key]
            left_out.append(key)
    both = f" {text.what_moved(table)}" if table.has_moved else ""
    narrow = f" Left out for want of room: {text.listed(left_out)}." if left_out else ""
    return rich_table(
        f"\n{text.caption(table, result)}",
        [str(column[0]) for column in shown.values()],
        list(zip(*(column[1:] for column in shown.values()), strict=True)),
        caption=f"In %, but for NLL.{both} {text.legend(table)}{narrow}",
    )


def _columns(table: ComparedSet) -> dict[str, list[str | Text]]:
    """The columns from left to right, each with its heading first, by what they are called."""
    from rich.text import Text

    from longtail.report.pages.compare_tables import cells, columns

    by_name: dict[str, list[str | Text]] = {"method": ["method", *(m.name for m in table.methods)]}
    for shown, column in zip(columns(table), zip(*cells(table), strict=True), strict=True):
        metric = shown.metric
        heading = shown.short.replace("as ", "as\n").replace("the ", "the\n")
        texts: list[str | Text] = []
        for cell in column:
            value = Text(cell.value, style="bold" if cell.best else "")
            if cell.between and metric is table.by and not shown.is_as_trained:
                value.append(f" {cell.between}", style="dim")
            texts.append(value.append("†" if cell.tied else ""))
        by_name[shown.short] = [heading, *texts]
    if len({len(method.runs) for method in table.methods}) > 1:  # else the title has it
        by_name["runs"] = ["runs", *(str(len(method.runs)) for method in table.methods)]
    if table.ranks is not None:
        by_name["rank"] = ["rank", *(f"{table.ranks.mean[m.name]:.2f}" for m in table.methods)]
    return by_name


def _width(shown: dict[str, list[str | Text]]) -> int:
    """What the table takes at the least, the names of methods in several lines."""
    columns = ("\n".join(map(str, column)) for key, column in shown.items() if key != "method")
    widths = (max(map(len, column.split("\n"))) for column in columns)
    return _NAMES + sum(widths) + 2 * len(shown) + 1
