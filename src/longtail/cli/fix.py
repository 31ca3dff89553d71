"""`longtail fix`: adjust the scores of a trained model, chosen on held-out data."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from longtail.cli import options
from longtail.cli.command import Command, writing
from longtail.cli.options import INPUT_FILE
from longtail.cli.outputs import closing, console, footer, metrics_json, print_json, rich_table
from longtail.cli.progress import bars
from longtail.cli.score_inputs import (
    Said,
    carried_prior,
    known_counts,
    open_table,
    score_options,
    target_prior,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data import ScoreTable
    from longtail.recipes.fix_run import FixResult


@click.command(
    cls=Command,
    files=("scores.safetensors", "adjuster.json", "metrics.json", "report.html"),
    short_help="Adjust the scores of a trained model, by held-out ones.",
)
@click.argument("scores", type=INPUT_FILE)
@click.option(
    "--apply", "to_apply", type=INPUT_FILE, help="Other scores of the same model to adjust."
)
@click.option(
    "--with", "adjuster", type=INPUT_FILE, help="An adjuster.json: apply it, fit nothing."
)
@score_options
@click.option("--apply-labels", type=INPUT_FILE, help="The labels of --apply, for the comparison.")
@click.option(
    "--target",
    type=options.WordOrFile(("uniform", "source", "estimate")),
    default="uniform",
    show_default=True,
    help="The prior to move to; source stays and only calibrates; estimate finds that of --apply. "
    + options.PRIOR_FILE,
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
    type=click.Choice(["accuracy_under_target", "nll", "brier", "ece"]),
    default="accuracy_under_target",
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
@options.seed
@options.output_folder(
    "Folder for scores.safetensors, adjuster.json, metrics.json and report.html.", required=True
)
@options.common
def fix(
    scores: Path,
    to_apply: Path | None,
    adjuster: Path | None,
    said: Said,
    apply_labels: Path | None,
    target: str | Path,
    tau: str,
    criterion: str,
    calibrate: str,
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
    _check_used(adjuster is not None, target, strength, to_apply)
    with bars(quiet) as progress, writing(output) as aside:
        task = progress.add_task("Reading", total=None, said="")
        from longtail.core.minimise import UnsettledError
        from longtail.posthoc import load_adjusters
        from longtail.recipes.fix import Plan
        from longtail.recipes.fix_run import rerun_fix, run_fix

        fitted_for = None if adjuster is None else load_adjusters(adjuster).classes
        table = open_table(scores, said, said.labels, fitted_for)
        known = known_counts(table, said)

        def advance(done: int) -> None:
            progress.update(task, description="Rows", advance=done, total=rows)

        rows = table.num_rows
        if adjuster is not None:
            result = rerun_fix(table, adjuster, known, aside, advance)
        else:
            other = None
            if to_apply is not None:
                other = _open_other(to_apply, said, apply_labels, table)
                rows = other.num_rows
            plan = Plan(
                target=_target(target, table),
                tau=strength,
                criterion=criterion,  # type: ignore[arg-type]  # click has checked both
                calibration=calibrate,  # type: ignore[arg-type]
                seed=seed,
            )
            source = _known_prior(said, table, known)
            progress.update(task, description="Fitting")
            try:
                result = run_fix(table, plan, source, known, aside, other, advance)
            except UnsettledError as error:
                raise ValueError(f"nothing can be fitted to {scores}: {error}") from error
        progress.update(task, description="Writing the page")
        _write(result, aside)
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    names = ("scores.safetensors", "adjuster.json", "metrics.json", "report.html")
    closing(output, names, as_json=as_json, quiet=quiet)


def _check_used(again: bool, target: str | Path, tau: float | None, to_apply: Path | None) -> None:
    """A usage error for an option that says something nobody would look at."""
    context = click.get_current_context()
    given = {
        name
        for name in ("target", "tau", "criterion", "calibrate", "seed", "carried", "apply_labels")
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    moot: dict[str, set[str]] = {}
    if again:
        moot["with --with, which fits nothing"] = given
    elif target in ("source", "estimate"):
        moot[f"with --target {target}, where there is no τ to choose"] = given & {
            "tau",
            "criterion",
        }
    elif tau is not None:
        moot[f"with --tau {tau:g}, where there is no τ to choose"] = given & {"criterion"}
    for where, names in moot.items():
        for name in sorted(names):
            raise click.UsageError(f"--{name.replace('_', '-')} is not used {where}; leave it out")
    if "apply_labels" in given and to_apply is None:
        raise click.UsageError("--apply-labels is for --apply; give both, or neither")


def _open_other(path: Path, said: Said, labels: Path | None, table: ScoreTable) -> ScoreTable:
    """The scores to adjust: they may do without the labels and class names that SCORES has."""
    try:
        return open_table(path, said, labels, table.classes)
    except ValueError as error:
        absent = (f"has no {what} {said.label_column!r}" for what in ("array", "column"))
        if not any(words in str(error) for words in absent):
            raise
        return open_table(path, replace(said, label_column=None), None, table.classes)


def _target(target: str | Path, table: ScoreTable) -> Literal["source", "estimate"] | Prior:
    if target in ("source", "estimate"):
        return target  # type: ignore[return-value]
    return target_prior(target, table)


def _tau(tau: str) -> float | None:
    if tau == "auto":
        return None
    try:
        strength = float(tau)
    except ValueError:
        strength = math.nan
    if not math.isfinite(strength):
        raise click.UsageError(f"--tau is a number or auto, got {tau!r}")
    return strength


def _known_prior(said: Said, table: ScoreTable, counts: npt.NDArray[np.int64] | None) -> Prior:
    prior = carried_prior(said, table, counts)
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
    from longtail.recipes.fix_words import (
        absent_in_words,
        described,
        headline,
        metric_rows,
        warning,
    )

    shown = console()
    if said := warning(result):
        shown.print(f"{said}\n", style="bold")
    for step in result.steps:
        shown.print(f"• {described(step)}")
    rows = metric_rows(result)
    if rows:
        title = f"\nMeasured on {result.measured_on}"
        shown.print(rich_table(title, ("metric", "before", "after", ""), rows))
    if absent := absent_in_words(result):
        shown.print(absent)
    shown.print(headline(result))
