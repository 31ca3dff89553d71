"""`longtail fix`: adjust the scores of a trained model, chosen on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli import options
from longtail.cli.options import INPUT
from longtail.cli.outputs import closing, console, footer, metrics_json, print_json, rich_table
from longtail.cli.progress import bars
from longtail.cli.score_inputs import carried_prior, open_table, score_options, target_prior

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data.score_tables import Kind, ScoreTable
    from longtail.recipes.fix_run import FixResult


@click.command(short_help="Adjust the scores of a trained model, by held-out ones.")
@click.argument("scores", type=INPUT)
@click.option("--apply", "to_apply", type=INPUT, help="Other scores of the same model to adjust.")
@click.option("--with", "adjuster", type=INPUT, help="An adjuster.json: apply it, fit nothing.")
@score_options
@click.option("--apply-labels", type=INPUT, help="The labels of --apply, for the comparison.")
@click.option(
    "--target",
    type=options.WordOrFile(("uniform", "source", "estimate")),
    default="uniform",
    show_default=True,
    help="The prior to move to; source stays and only calibrates; estimate finds that of --apply.",
)
@click.option(
    "--tau",
    default="auto",
    show_default=True,
    metavar="auto|NUMBER",
    help="How far to move: 1 is all the way.",
)
@click.option(
    "--criterion",
    type=click.Choice(["balanced_error", "nll", "brier", "ece"]),
    default="balanced_error",
    show_default=True,
    help="What τ is chosen by.",
)
@click.option(
    "--calibrate",
    type=click.Choice(["auto", "temperature", "bias", "vector", "none"]),
    default="auto",
    show_default=True,
    help="What is fitted before the move: a temperature, also a bias a class, also a scale a "
    "class. auto is temperature, and bias where the target is estimated.",
)
@click.option(
    "--zeros",
    type=click.Choice(["error", "smooth"]),
    default="error",
    show_default=True,
    help="Classes without training samples: refuse them, or add one half to every count.",
)
@options.seed
@options.output_folder(
    "Folder for scores.safetensors, adjuster.json, metrics.json and report.html.", required=True
)
@options.common
def fix(
    scores: Path,
    to_apply: Path | None,
    adjuster: Path | None,
    kind: Kind | None,
    labels: Path | None,
    label_column: str | None,
    classes: Path | None,
    counts: Path | None,
    carried: str | Path,
    apply_labels: Path | None,
    target: str | Path,
    tau: str,
    criterion: str,
    calibrate: str,
    zeros: str,
    seed: int,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fix a trained model: fit on the held-out SCORES, and adjust them or those of --apply.

    SCORES is an .npz, .npy, .safetensors, .csv, .tsv (also .gz) or .parquet file with a row a
    sample and a column a class, of logits or probabilities.
    """
    if adjuster is not None and to_apply is not None:
        raise click.UsageError("--with applies a fix to SCORES itself; leave --apply out")
    strength = _tau(tau)
    with bars(quiet) as progress:
        task = progress.add_task("Reading", total=None, said="")
        from longtail.recipes.fix import Plan
        from longtail.recipes.fix_inputs import read_counts
        from longtail.recipes.fix_run import rerun_fix, run_fix

        table = open_table(scores, kind, labels, classes, label_column)
        known = table.counts if counts is None else read_counts(counts, table)
        output.mkdir(parents=True, exist_ok=True)

        def advance(done: int) -> None:
            progress.update(task, description="Rows", advance=done, total=rows)

        rows = table.num_rows
        if adjuster is not None:
            result = rerun_fix(table, adjuster, known, output, advance)
        else:
            other = None
            if to_apply is not None:
                other = open_table(to_apply, kind, apply_labels, classes, label_column)
                rows = other.num_rows
            plan = Plan(
                target=_target(target, table),
                tau=strength,
                criterion=criterion,  # type: ignore[arg-type]  # click has checked both
                calibration=calibrate,  # type: ignore[arg-type]
                seed=seed,
            )
            source = _known_prior(carried, table, known, zeros)
            progress.update(task, description="Fitting")
            result = run_fix(table, plan, source, known, output, other, advance)
    _write(result, output)
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    names = ["scores.safetensors", "metrics.json", "report.html"]
    names += [] if adjuster else ["adjuster.json"]
    closing(output, names, as_json=as_json, quiet=quiet)


def _target(target: str | Path, table: ScoreTable) -> Literal["source", "estimate"] | Prior:
    if target in ("source", "estimate"):
        return target  # type: ignore[return-value]
    return target_prior(target, table)


def _tau(tau: str) -> float | None:
    if tau == "auto":
        return None
    try:
        return float(tau)
    except ValueError:
        raise click.UsageError(f"--tau is a number or auto, got {tau!r}") from None


def _known_prior(
    carried: str | Path, table: ScoreTable, counts: npt.NDArray[np.int64] | None, zeros: str
) -> Prior:
    prior = carried_prior(carried, table, counts, zeros)
    if prior is None:
        raise click.UsageError(
            f"{table.path} does not say what its scores carry: give the training counts with "
            "--counts, or say it with --carried"
        )
    return prior


def _write(result: FixResult, output: Path) -> None:
    from longtail.recipes.fix_page import fix_page
    from longtail.report import write_page

    metrics_json(output / "metrics.json", result.as_json())
    write_page(fix_page(result, footer()), output / "report.html")


def _show(result: FixResult) -> None:
    from longtail.recipes.fix_words import described, headline, metric_rows

    shown = console()
    for step in result.steps:
        shown.print(f"• {described(step)}")
    rows = metric_rows(result)
    if rows:
        title = f"\nMeasured on {result.measured_on}"
        shown.print(rich_table(title, ("metric", "before", "after", ""), rows))
    shown.print(headline(result))
