"""`longtail report`: the page on a run folder, on scores, or on several of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options, terminal
from longtail.cli.command import Command
from longtail.cli.compare import present
from longtail.cli.score_inputs import ScoreOptions, read_target, score_options
from longtail.flows import file_names

if TYPE_CHECKING:
    from longtail.core import GroupEdges, Prior, Scores
    from longtail.report import Page


@click.command(
    cls=Command,
    files=file_names.COMPARE,
    short_help="Write the page on a run, on scores, or on several of them.",
)
@click.argument(
    "paths", nargs=-1, required=True, type=options.INPUT, metavar="RUN|SCORES|FOLDER..."
)
@options.input_file("--after", help="Scores of the same samples after a change.")
@score_options
@options.word_or_file(
    "--target",
    ("uniform",),
    "The prior to measure under, and to move scores to that say what they carry. "
    + options.PRIOR_FILE,
)
@options.groups("those of the recipes of runs, else many=100,few=20")
@options.output_folder(
    "Folder for report.html; for a comparison also its tables.", default=Path("longtail-report")
)
@options.common
def report(
    paths: tuple[Path, ...],
    after: Path | None,
    target: str | Path,
    groups: GroupEdges | None,
    output: Path,
    as_json: bool,
    quiet: bool,
    reader: ScoreOptions,
) -> None:
    """Write one self-contained page: on a run folder, on a file of scores, or on many of both.

    A folder of longtail train, fix or fit, or a file of scores with labels in any format that
    longtail fix reads. Several, or a folder with several in it, are compared, as by longtail
    compare.
    """
    with terminal.status("Reading", quiet) as say:
        from longtail.flows.run_sources import single_run
        from longtail.report import page_of

        one = single_run(paths)
        used = [*([] if after is None else ["--after"]), *reader.names()]
        if used and (one is None or one.is_dir()):
            raise click.UsageError(f"{used[0]} is for a report on one file of scores")
        say("Measuring")
        if one is None:
            from longtail.flows import compare as comparing

            compared = comparing.compare(paths, target=target, groups=groups)
        elif one.is_dir():
            if target != "uniform":
                raise click.UsageError(
                    "a run is reported under the target of its recipe: leave --target out, or give "
                    "its file of scores"
                )
            from longtail.flows.train.result import read_run

            run = read_run(one, terminal.command(), groups)
            assert run.judgement is not None  # there are scores
            page, judgement = page_of(run), run.judgement
        else:
            from longtail.flows.judge import judge_scores

            judged = judge_scores(*_read(one, after, target, reader), groups)
            judgement = replace(judged, scores_name=str(one), command=terminal.command())
            page = page_of(judgement)
    if one is None:
        present(compared, output, as_json=as_json, quiet=quiet)
        return
    with terminal.writing(output) as aside:
        from longtail.report import write_page

        write_page(page, aside / file_names.PAGE)
    if as_json:
        terminal.print_json({"summary": page.summary, "next": page.next_step} | judgement.as_json())
    else:
        _show(page)
    terminal.closing(output, [file_names.PAGE], as_json=as_json, quiet=quiet)


def _read(
    path: Path, after: Path | None, target: str | Path, reader: ScoreOptions
) -> tuple[Scores, Scores | None, Prior]:
    """The scores before, those after if there are any, and the target."""
    from longtail.flows.score_sources import before_and_after, target_of

    table = reader.open(path)
    other = None if after is None else reader.open_after(after, table)
    counts, carried = reader.read_counts(table), reader.read_carried(table)
    scores = before_and_after(table, other, carried, counts, reader.zeros)
    return *scores, target_of(read_target(target, table), table.num_classes)


def _show(page: Page) -> None:
    shown = terminal.console()
    if page.warning:
        shown.print(page.warning, style="bold")
    if page.lead is not None:
        shown.print(terminal.report_table("", page.lead))
    shown.print(page.summary)
    if page.next_step:
        shown.print(f"What to do next: {page.next_step}")
