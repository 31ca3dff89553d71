"""`longtail demo`: two problems in under a minute, two tables, one page."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command, writing
from longtail.cli.outputs import console, footer, note, print_json, rich_table
from longtail.cli.progress import bars
from longtail.flows.json_text import write_json

if TYPE_CHECKING:
    from rich.table import Table

    from longtail.recipes.demo import Demo


@click.command(
    cls=Command,
    files=("report.html", "results.json"),
    short_help="Show on two problems why logit adjustment works.",
)
@options.output_folder(
    "Folder for report.html and results.json.", default=Path("longtail-demo"), show_default=True
)
@click.option(
    "--trials",
    type=click.IntRange(min=2),
    default=100,
    show_default=True,
    help="How often the two Gaussians are drawn anew.",
)
@options.seed
@options.common
def demo(output: Path, trials: int, seed: int, as_json: bool, quiet: bool) -> None:
    """Show on two problems why logit adjustment works and what it costs."""
    with writing(output) as aside:
        started = time.monotonic()
        results = _run(trials, seed, quiet)
        took = time.monotonic() - started
        _write(results, aside)
    if as_json:
        print_json(results.as_json())
    else:
        _show(results, trials)
    said = f"\nDone in {took:.0f} s. The report with the figures: {output / 'report.html'}"
    note(said, as_json=as_json, quiet=quiet)


def _run(trials: int, seed: int, quiet: bool) -> Demo:
    with bars(quiet) as progress:
        import torch

        from longtail.recipes import caltech101
        from longtail.recipes import demo as recipe

        torch.set_num_threads(1)  # the problems are small: one thread each, several at a time
        tasks = {
            "gaussians": progress.add_task("Two Gaussians, trials", total=trials, said=""),
            "caltech": progress.add_task("Caltech-101, models", total=caltech101.TICKS, said=""),
        }
        workers = min(4, os.cpu_count() or 1)
        return recipe.run(trials, seed, workers, lambda name: progress.advance(tasks[name]))


def _write(results: Demo, output: Path) -> None:
    from longtail.recipes.demo_page import demo_page
    from longtail.report import write_page

    write_json(output / "results.json", results.as_json())
    write_page(demo_page(results, footer()), output / "report.html")


def _show(results: Demo, trials: int) -> None:
    shown = console()
    shown.print(_gaussian_table(results, trials))
    shown.print(
        "Last three: ERM corrected afterwards, each at the τ that is best for it. Only logit "
        "adjustment reaches the Bayes error; weight normalisation does at no τ.\n"
    )
    shown.print(_caltech_table(results))
    shown.print(
        f"The logit-adjusted loss gains {results.gain:.1f} points of balanced accuracy. "
        f"{results.probabilities}\n"
        "The problem is convex, so adjusting in the loss and afterwards agree closely."
    )


def _gaussian_table(results: Demo, trials: int) -> Table:
    from longtail.recipes.demo import BAYES

    table = rich_table(
        f"Two Gaussians, 5 % positives: balanced error in %, {trials} trials",
        ("method", "closed form", "on test samples", "above Bayes"),
        [("Bayes", f"{BAYES:.3f}", "", "")],
    )
    for rows in (results.losses, results.corrections):
        table.add_section()
        for row in rows:
            table.add_row(
                row.method,
                "{:.3f} ± {:.3f}".format(*row.exact),
                "" if row.sampled is None else "{:.2f} ± {:.2f}".format(*row.sampled),
                f"{row.above_bayes:+.3f}",
            )
    return table


def _caltech_table(results: Demo) -> Table:
    keys = ("balanced_accuracy", "many", "medium", "few", "accuracy")
    return rich_table(
        "Caltech-101 features, 300 to 3 images a class: accuracy in %",
        ("method", "weight decay", "balanced", "many", "medium", "few", "accuracy"),
        [
            (
                method.name,
                f"{method.weight_decay:g}",
                *(_percent(method.metrics[key]) for key in keys),
            )
            for method in results.caltech
        ],
    )


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f}"
