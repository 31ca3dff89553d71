"""`longtail fit`: classifiers on features of a frozen backbone, compared and chosen."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from longtail.core import Prior
    from longtail.engine import Features
    from longtail.recipes.fit_result import FitResult

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("features", type=_FILE, required=False)
@click.option(
    "--methods",
    default="",
    metavar="NAME,...",
    help="Which methods to fit, by name; all but the slow ones by default.",
)
@click.option("--list", "list_methods", is_flag=True, help="Name the methods and stop.")
@click.option("--labels", type=_FILE, help="The labels of FEATURES, if it is an .npy.")
@click.option("--split", type=_FILE, help="train, validation or test for each row of an .npy.")
@click.option(
    "--target",
    default="uniform",
    show_default=True,
    metavar="uniform|train|FILE",
    help="The prior to predict under. FILE is a JSON list of weights, one a class.",
)
@click.option(
    "--criterion",
    type=click.Choice(["accuracy", "balanced_accuracy", "nll"]),
    default="accuracy",
    show_default=True,
    help="What τ and the best method are chosen by: accuracy under the target (for the uniform one "
    "that is balanced accuracy), balanced accuracy whatever the target, or log-loss.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Parts the train part is cut into to choose by, where there is no validation part.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not tables.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for model.safetensors, scores, metrics.json and report.html.",
)
def fit(
    features: Path | None,
    methods: str,
    list_methods: bool,
    labels: Path | None,
    split: Path | None,
    target: str,
    criterion: str,
    folds: int,
    seed: int,
    as_json: bool,
    output: Path | None,
) -> None:
    """Fit classifiers on FEATURES of a frozen backbone, compare them, and keep the best.

    FEATURES is a feature file of longtail (.safetensors), an .npz with features and labels, or an
    .npy beside --labels. Weight decay, τ and the method are chosen on held-out samples, and the
    best is fitted again on the whole train part.
    """
    from longtail.engine import read_features
    from longtail.recipes.fit_result import FitPlan
    from longtail.recipes.fit_run import run_fit, write_fit

    if list_methods:
        _list()
        return
    if features is None or output is None:
        raise click.UsageError("give a file of FEATURES and a folder with -o; --list needs neither")
    data = read_features(features, labels, split)
    plan = FitPlan(
        methods=_methods(methods),
        target=_target(target, data),
        criterion=criterion,  # type: ignore[arg-type]  # click has checked it
        folds=folds,
        seed=seed,
    )
    output.mkdir(parents=True, exist_ok=True)
    with _progress() as tick:
        result = run_fit(data, plan, tick)
    write_fit(result, output)
    _write(result, output)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        _show(result)
    scores = "validation.safetensors" + (", test.safetensors" if result.test is not None else "")
    click.echo(
        f"\nIn {output}: model.safetensors, {scores}, metrics.json, report.html", err=as_json
    )


def _list() -> None:
    from longtail.recipes.fit_methods import METHODS, SLOW

    for name, method in METHODS.items():
        slow = "  (slow: only if named)" if name in SLOW else ""
        click.echo(f"{name:22} {method.title}{slow}")


def _methods(methods: str) -> list[str]:
    from longtail.recipes.fit_methods import METHODS

    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names:
        if name not in METHODS:
            raise click.UsageError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return names


def _target(target: str, features: Features) -> Prior | None:
    from longtail.core import Prior

    if target == "uniform":
        return None
    if target == "train":
        return Prior.of(features.counts)
    place = Path(target)
    if not place.is_file():
        raise click.UsageError(
            f"--target is uniform, train or a JSON file of weights; there is no file {place}"
        )
    try:
        weights = json.loads(place.read_text(encoding="utf-8"))
        prior = Prior.of([float(weight) for weight in weights])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{place} must be a JSON list of weights above zero, one a class ({error})"
        ) from error
    if prior.num_classes != features.num_classes:
        raise ValueError(
            f"{place} has {prior.num_classes} weights, but there are {features.num_classes} classes"
        )
    return prior


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being fitted, on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    with console.status("Reading") as status:
        yield lambda what: status.update(f"Fitting: {what}")


def _write(result: FitResult, output: Path) -> None:
    from longtail import __version__
    from longtail.recipes.fit_page import fit_page
    from longtail.report import Footer, write_page

    command = shlex.join(["longtail", *sys.argv[1:]])
    said = {"version": __version__, "command": command} | result.as_json()
    (output / "metrics.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(fit_page(result, footer), output / "report.html")


def _show(result: FitResult) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from longtail.recipes.fit_words import (
        HEADINGS,
        accuracy_name,
        caution,
        decision,
        headline,
        method_rows,
    )

    console = Console()
    title = f"{accuracy_name(result).capitalize()} (%), best first"
    table = Table(title=title, title_justify="left")
    for name in HEADINGS:
        table.add_column(name, justify="left" if name == "method" else "right")
    for row in method_rows(result):
        table.add_row(*map(Text, row))
    console.print(table)
    console.print(Text(headline(result)))
    console.print(Text(decision(result)))
    if caution(result):
        console.print(Text(caution(result)))
