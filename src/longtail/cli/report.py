"""`longtail report`: the page on a run folder, on scores, or on several of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command, writing
from longtail.cli.compare import FILES, present
from longtail.cli.outputs import closing, console, footer, print_json, rich_table
from longtail.cli.progress import status
from longtail.cli.score_inputs import (
    Said,
    carried_prior,
    known_counts,
    open_table,
    score_options,
    target_prior,
)

if TYPE_CHECKING:
    from longtail.core import Prior, Scores
    from longtail.recipes.reporting import Report
    from longtail.report import Page


@click.command(
    cls=Command,
    files=FILES,
    short_help="Write the page on a run, on scores, or on several of them.",
)
@click.argument(
    "paths", nargs=-1, required=True, type=options.INPUT, metavar="RUN|SCORES|FOLDER..."
)
@click.option("--after", type=options.INPUT_FILE, help="Scores of the same samples after a change.")
@score_options
@click.option(
    "--target",
    type=options.WordOrFile(("uniform",)),
    default="uniform",
    show_default=True,
    help="The prior to measure under, and to move scores to that say what they carry. "
    + options.PRIOR_FILE,
)
@options.output_folder(
    "Folder for report.html; for a comparison also its tables.",
    default=Path("longtail-report"),
    show_default=True,
)
@options.common
def report(
    paths: tuple[Path, ...],
    after: Path | None,
    target: str | Path,
    output: Path,
    as_json: bool,
    quiet: bool,
    said: Said,
) -> None:
    """Write one self-contained page: on a run folder, on a file of scores, or on many of both.

    A folder of longtail train, fix or fit, or a file of scores with labels in any format that
    longtail fix reads. Several, or a folder with several in it, are compared, as by longtail
    compare.
    """
    used = [*([] if after is None else ["--after"]), *said.options()]
    with status("Reading", quiet) as say:
        from longtail.flows import compare as comparing
        from longtail.recipes.reporting import run_folder_report, scores_report, single_run
        from longtail.report import write_page

        one = single_run(paths)
        if used and (one is None or one.is_dir()):
            raise click.UsageError(f"{used[0]} is for a report on one file of scores")
        say("Measuring")
        if one is None:
            compared = comparing.compare(paths, target=target)
        elif one.is_dir():
            if target != "uniform":
                raise click.UsageError(
                    "a run is reported under the target of its recipe: leave --target out, or give "
                    "its file of scores"
                )
            made = run_folder_report(one, footer())
        else:
            made = scores_report(str(one), *_scores(one, after, target, said), footer())
        if one is not None:
            with writing(output) as aside:
                write_page(made.page, aside / "report.html")
    if one is None:
        present(compared, output, as_json=as_json, quiet=quiet)
        return
    if as_json:
        print_json(_values(made))
    else:
        _show(made.page)
    closing(output, ["report.html"], as_json=as_json, quiet=quiet)


def _scores(
    path: Path, after: Path | None, target: str | Path, said: Said
) -> tuple[Scores, Scores | None, Prior]:
    """The scores before, those after if there are any, and the target."""
    from longtail.flows.run_sources import is_longtail_scores

    table = open_table(path, said, said.labels)
    known = known_counts(table, said)
    before = table.as_scores(carried=carried_prior(said, table, known), counts=known)
    if before.labels is None:
        raise ValueError(
            f"{path} has no labels, and a report is on what scores get right; give --labels FILE"
        )
    goal = target_prior(target, table)
    if after is None:
        return before, None, goal
    # What longtail wrote needs no words; and a column may be one of --labels.
    if after.suffix.lower() == ".safetensors":
        kind = None if is_longtail_scores(after) else said.kind
        said = replace(said, kind=kind, array=None, label_column=None)
    elif said.labels is not None:
        said = replace(said, label_column=None)
    other = open_table(after, said, None, table.classes).as_scores()
    # They are of the same samples, so what one file does not say the other does.
    labelled = before.labels if other.labels is None else other.labels
    return (
        before,
        replace(before, logits=other.logits, labels=labelled, carried=other.carried),
        goal,
    )


def _show(page: Page) -> None:
    shown = console()
    if page.warning:
        shown.print(page.warning, style="bold")
    if page.lead is not None:
        names = [column.name for column in page.lead.columns]
        rows = [[str(cell) for cell in row] for row in page.lead.rows]
        shown.print(rich_table("", names, rows, caption=page.lead.caption))
    shown.print(page.summary)
    if page.next_step:
        shown.print(f"What to do next: {page.next_step}")


def _values(made: Report) -> dict[str, object]:
    said = {"summary": made.page.summary, "next": made.page.next_step}
    return said | made.judged.comparison.as_json()
