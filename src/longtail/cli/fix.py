"""`longtail fix`: adjust the scores of a trained model, chosen on held-out data."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from longtail.core import Prior
    from longtail.data.score_tables import Kind, ScoreTable
    from longtail.recipes.fix_run import FixResult

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("scores", type=_FILE)
@click.option("--apply", "to_apply", type=_FILE, help="Other scores of the same model to adjust.")
@click.option("--with", "adjuster", type=_FILE, help="An adjuster.json: apply it, fit nothing.")
@click.option(
    "--kind",
    type=click.Choice(["logits", "probs"]),
    help="What the files hold. Not needed for files that longtail wrote.",
)
@click.option("--labels", type=_FILE, help="The labels of SCORES, if it does not hold them.")
@click.option("--apply-labels", type=_FILE, help="The labels of --apply, for the comparison.")
@click.option("--label-column", help="Which column, by name or place, or array holds the labels.")
@click.option("--classes", type=_FILE, help="The class names in the order of the columns.")
@click.option("--counts", type=_FILE, help="Training samples of each class, or training labels.")
@click.option(
    "--carried",
    default="auto",
    show_default=True,
    metavar="auto|counts|uniform|measure|FILE",
    help="The prior the scores carry: what the file says, else the counts; uniform for a model "
    "trained by a balancing loss; measure to fit it on SCORES.",
)
@click.option(
    "--target",
    default="uniform",
    show_default=True,
    metavar="uniform|source|estimate|FILE",
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
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not tables.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for scores.safetensors, adjuster.json, metrics.json and report.html.",
)
def fix(
    scores: Path,
    to_apply: Path | None,
    adjuster: Path | None,
    kind: Kind | None,
    labels: Path | None,
    apply_labels: Path | None,
    label_column: str | None,
    classes: Path | None,
    counts: Path | None,
    carried: str,
    target: str,
    tau: str,
    criterion: str,
    calibrate: str,
    zeros: str,
    seed: int,
    as_json: bool,
    output: Path,
) -> None:
    """Fix a trained model: fit on the held-out SCORES, and adjust them or those of --apply.

    SCORES is an .npz, .npy, .safetensors, .csv, .tsv (also .gz) or .parquet file with a row a
    sample and a column a class, of logits or probabilities.
    """
    from longtail.recipes.fix import Plan
    from longtail.recipes.fix_inputs import read_counts
    from longtail.recipes.fix_run import rerun_fix, run_fix

    if adjuster is not None and to_apply is not None:
        raise click.UsageError("--with applies a fix to SCORES itself; leave --apply out")
    table = _open(scores, kind, labels, classes, label_column)
    known = table.counts if counts is None else read_counts(counts, table)
    output.mkdir(parents=True, exist_ok=True)
    if adjuster is not None:
        with _progress(table.num_rows) as advance:
            result = rerun_fix(table, adjuster, known, output, advance)
    else:
        other = None
        if to_apply is not None:
            other = _open(to_apply, kind, apply_labels, classes, label_column)
        plan = Plan(
            target=_target(target, table),
            tau=_tau(tau),
            criterion=criterion,  # type: ignore[arg-type]  # click has checked both
            calibration=calibrate,  # type: ignore[arg-type]
            seed=seed,
        )
        source = _carried(carried, table, known, zeros)
        with _progress((other or table).num_rows) as advance:
            result = run_fix(table, plan, source, known, output, other, advance)
    _write(result, output)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        _show(result)
    names = "scores.safetensors, metrics.json, report.html"
    names += "" if adjuster else ", adjuster.json"
    click.echo(f"\nIn {output}: {names}", err=as_json)


def _open(
    path: Path, kind: Kind | None, labels: Path | None, classes: Path | None, column: str | None
) -> ScoreTable:
    from longtail.data.score_tables import Layout, open_score_table

    if kind is None and path.suffix.lower() == ".safetensors":
        kind = "logits"
    if kind is None:
        raise click.UsageError(
            f"say what {path} holds: --kind logits or --kind probs; it is not guessed"
        )
    place = int(column) if column and column.isdigit() else column
    return open_score_table(path, kind, labels, classes, Layout(labels=place))


def _target(target: str, table: ScoreTable) -> Any:
    from longtail.core import Prior
    from longtail.recipes.fix_inputs import read_prior

    if target in ("source", "estimate"):
        return target
    return (
        Prior.uniform(table.num_classes) if target == "uniform" else read_prior(Path(target), table)
    )


def _tau(tau: str) -> float | None:
    if tau == "auto":
        return None
    try:
        return float(tau)
    except ValueError:
        raise click.UsageError(f"--tau is a number or auto, got {tau!r}") from None


def _carried(
    carried: str, table: ScoreTable, counts: npt.NDArray[np.int64] | None, zeros: str
) -> Prior:
    from longtail.core import Prior, measure_carried
    from longtail.recipes.fix_inputs import read_prior
    from longtail.recipes.fix_tables import scores_to_fit_on

    if carried == "auto" and table.carried is not None:
        return table.carried
    if carried in ("auto", "counts"):
        if counts is None:
            raise click.UsageError(
                f"{table.path} does not say what its scores carry: give the training counts with "
                "--counts, or say it with --carried"
            )
        return Prior.of(counts, zeros=zeros)  # type: ignore[arg-type]
    if carried == "uniform":
        return Prior.uniform(table.num_classes)
    if carried == "measure":
        held_out = scores_to_fit_on(table, None, counts, seed=0)
        if held_out.labels is None:
            raise click.UsageError("--carried measure needs labels")
        return measure_carried(held_out.logits, held_out.labels)
    return read_prior(Path(carried), table)


@contextmanager
def _progress(rows: int) -> Iterator[Callable[[int], None]]:
    """Rows done, on a terminal and if it takes a while."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("Rows", total=rows)
        yield lambda done: progress.advance(task, done)


def _write(result: FixResult, output: Path) -> None:
    from longtail import __version__
    from longtail.recipes.fix_page import fix_page
    from longtail.report import Footer, write_page

    command = shlex.join(["longtail", *sys.argv[1:]])
    said = {"version": __version__, "command": command} | result.as_json()
    (output / "metrics.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(fix_page(result, footer), output / "report.html")


def _show(result: FixResult) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from longtail.recipes.fix_words import described, headline, metric_rows

    console = Console()
    for step in result.steps:
        console.print(Text(f"• {described(step)}"))
    rows = metric_rows(result)
    if rows:
        table = Table(title=f"\nMeasured on {result.measured_on}", title_justify="left")
        for name in ("metric", "before", "after", ""):
            table.add_column(name, justify="left" if name == "metric" else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print(Text(headline(result)))
