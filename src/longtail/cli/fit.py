"""`longtail fit`: classifiers on features of a frozen backbone, compared and chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command, writing
from longtail.cli.options import INPUT_FILE
from longtail.cli.outputs import closing, console, footer, metrics_json, print_json, rich_table
from longtail.cli.plain_text import echo
from longtail.cli.progress import status

if TYPE_CHECKING:
    from longtail.core import Prior
    from longtail.engine import Features
    from longtail.recipes.fit_result import FitResult


@click.command(
    cls=Command,
    files=(
        "model.safetensors",
        "validation.safetensors",
        "test.safetensors",
        "metrics.json",
        "report.html",
    ),
    short_help="Fit classifiers on features of a frozen backbone, keep the best.",
)
@click.argument("features", type=INPUT_FILE, required=False)
@click.option(
    "--methods",
    default="",
    metavar="NAME,...",
    help="Which methods to fit, by name; all but the slow ones by default.",
)
@click.option("--list", "list_methods", is_flag=True, help="Name the methods and stop.")
@click.option("--labels", type=INPUT_FILE, help="The labels of FEATURES, if it is an .npy.")
@click.option("--split", type=INPUT_FILE, help="train, validation or test for each row of an .npy.")
@click.option(
    "--target",
    type=options.WordOrFile(("uniform", "train")),
    default="uniform",
    show_default=True,
    help=f"The prior to predict under. {options.PRIOR_FILE}",
)
@click.option(
    "--criterion",
    type=click.Choice(["accuracy_under_target", "balanced_accuracy", "nll"]),
    default="accuracy_under_target",
    show_default=True,
    help="What the best method is chosen by: accuracy under the target (for the uniform one that "
    "is balanced accuracy), balanced accuracy whatever the target, or log-loss. τ is chosen by the "
    "log-loss if that is it, else by accuracy under the target.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Parts the train part is cut into to choose by, where there is no validation part.",
)
@options.seed
@options.output_folder("Folder for model.safetensors, scores, metrics.json and report.html.")
@options.common
def fit(
    features: Path | None,
    methods: str,
    list_methods: bool,
    labels: Path | None,
    split: Path | None,
    target: str | Path,
    criterion: str,
    folds: int,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit classifiers on FEATURES of a frozen backbone, compare them, and keep the best.

    FEATURES is a feature file of longtail (.safetensors), an .npz with features and labels, or an
    .npy beside --labels. Weight decay, τ and the method are chosen on held-out samples, and the
    best is fitted again on the whole train part.
    """
    if list_methods:
        _list(as_json, quiet)
        return
    if features is None or output is None:
        raise click.UsageError("give a file of FEATURES and a folder with -o; --list needs neither")
    with status("Reading", quiet) as say, writing(output) as aside:
        from longtail.engine import read_features
        from longtail.recipes.fit_result import FitPlan
        from longtail.recipes.fit_run import run_fit, write_fit

        chosen = _methods(methods)
        data = read_features(features, labels, split)
        plan = FitPlan(
            methods=chosen,
            target=_target(target, data, features),
            criterion=criterion,  # type: ignore[arg-type]  # click has checked it
            folds=folds,
            seed=seed,
        )
        result = run_fit(data, plan, lambda what: say(f"Fitting: {what}"))
        say("Writing")
        write_fit(result, aside)
        _write(result, aside)
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    scores = ["validation.safetensors", *(["test.safetensors"] if result.test is not None else [])]
    names = ("model.safetensors", *scores, "metrics.json", "report.html")
    closing(output, names, as_json=as_json, quiet=quiet)


def _list(as_json: bool, quiet: bool) -> None:
    with status("Reading", quiet):
        from longtail.recipes.fit_methods import METHODS, SLOW

    if as_json:
        print_json(
            [
                {"name": name, "title": method.title, "slow": name in SLOW}
                for name, method in METHODS.items()
            ]
        )
        return
    for name, method in METHODS.items():
        slow = "  (slow: only if named)" if name in SLOW else ""
        echo(f"{name:22} {method.title}{slow}")


def _methods(methods: str) -> list[str]:
    from longtail.recipes.fit_methods import METHODS

    names = [name.strip() for name in methods.split(",") if name.strip()]
    for name in names:
        if name not in METHODS:
            raise click.UsageError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return names


def _target(target: str | Path, features: Features, source: Path) -> Prior | None:
    from longtail.core import Prior
    from longtail.flows.prior_files import ClassesOf, read_prior

    if target == "uniform":
        return None
    if target == "train":
        return Prior.of(features.counts)
    place = Path(target)
    prior = read_prior(place, ClassesOf(source, features.num_classes, features.classes))
    if not prior.probs.all():
        raise ValueError(f"{place} has a weight of zero; every class needs one above zero")
    return prior


def _write(result: FitResult, output: Path) -> None:
    from longtail.recipes.fit_page import fit_page
    from longtail.report import write_page

    metrics_json(output / "metrics.json", result.as_json())
    write_page(fit_page(result, footer()), output / "report.html")


def _show(result: FitResult) -> None:
    from longtail.recipes import fit_words as words

    shown = console()
    columns = words.brief_columns(result)
    title = f"{words.accuracy_name(result).capitalize()} (%), best first"
    shown.print(rich_table(title, list(columns), zip(*columns.values(), strict=True)))
    for sentence in (
        *words.failures(result),
        words.headline(result),
        words.decision(result),
        words.caution(result),
    ):
        if sentence:
            shown.print(sentence)
