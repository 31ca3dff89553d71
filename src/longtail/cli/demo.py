"""`longtail demo`: two problems in under a minute, two tables, one page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.terminal import bars, command, console, note, print_json, rich_table, writing
from longtail.flows import file_names
from longtail.flows.results import write_json

if TYPE_CHECKING:
    from longtail.flows.demo import DemoResult


@click.command(
    cls=Command,
    files=file_names.DEMO,
    short_help="Show on two problems why logit adjustment works.",
)
@options.output_folder("Folder for report.html and results.json.", default=Path("longtail-demo"))
@options.whole_number("--trials", 100, "How often the two Gaussians are drawn.", least=2)
@options.seed
@options.common
def demo(output: Path, trials: int, seed: int, as_json: bool, quiet: bool) -> None:
    """Show on two problems why logit adjustment works and what it costs."""
    with writing(output) as aside, bars(quiet) as bar:
        from longtail.flows.demo import demo as run_demo
        from longtail.recipes.demo import CALTECH, GAUSSIANS
        from longtail.report import save

        started = time.monotonic()
        tasks = {
            "gaussians": bar.add_task("Two Gaussians, trials", total=trials, detail=""),
            "caltech": bar.add_task("Caltech-101, models", total=CALTECH.steps, detail=""),
        }
        result = run_demo(
            GAUSSIANS, CALTECH, trials, seed, lambda name: bar.advance(tasks[name]), command()
        )
        took = time.monotonic() - started
        write_json(aside / file_names.DEMO_RESULTS, result.as_json())
        save(result, aside)
    if as_json:
        print_json(result.as_json())
    else:
        _show(result, trials)
    text = f"\nDone in {took:.0f} s. The report with the figures: {output / file_names.PAGE}"
    note(text, as_json=as_json, quiet=quiet)


def _show(result: DemoResult, trials: int) -> None:
    from longtail.report.pages import demo as page

    bayes, *groups = page.gaussian_rows(result.gaussians)
    table = rich_table(
        f"Two Gaussians, 5 % positives: balanced error in %, {trials} trials",
        ("method", "closed form", "on test samples", "above Bayes"),
        bayes,
    )
    for rows in groups:
        table.add_section()
        for row in rows:
            table.add_row(*row)
    shown = console()
    shown.print(table)
    shown.print(
        "Last three: ERM corrected afterwards, each at the τ that is best for it. Only logit "
        "adjustment reaches the Bayes error; weight normalisation does at no τ.\n"
    )
    shown.print(
        rich_table(
            "Caltech-101 features, 300 to 3 images a class: accuracy in %",
            ("method", "weight decay", "balanced", "many", "medium", "few", "accuracy"),
            page.caltech_rows(result.caltech),
        )
    )
    shown.print(
        f"{page.gain_and_cost(result)}\n"
        "The problem is convex, so adjusting in the loss and afterwards agree closely."
    )
