"""`longtail train`: follow a recipe from images to a report."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli import options
from longtail.cli.command import Command, is_same
from longtail.cli.completion import recipe_names
from longtail.cli.errors import Interrupted
from longtail.cli.outputs import closing, console, print_json, rich_table
from longtail.cli.plain_text import echo, is_first
from longtail.cli.progress import bars, is_shown, status

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from longtail.engine.training import EpochEnd, StepEnd
    from longtail.recipes.run import Watch
    from longtail.recipes.training.recipe import Recipe
    from longtail.recipes.training.results import RunResult


@click.command(
    cls=Command,
    files=("versions.json", "log.csv", "metrics.json", "model.safetensors", "report.html"),
    short_help="Train by a recipe, from images to a report.",
)
@click.argument("name", metavar="NAME|FILE.yaml", shell_complete=recipe_names)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", type=click.Path(), help="Where the images are: the recipe's data.path.")
@options.output_folder(
    "Folder for recipe, versions, log, checkpoint, model, scores, metrics and report.",
    metavar="RUN",
)
@click.option(
    "--resume",
    type=click.Choice(["auto", "never"]),
    default="auto",
    show_default=True,
    help="Go on with the run in RUN if it is of this recipe, or refuse to.",
)
@click.option("--dry-run", is_flag=True, help="Read the data and build all, but train nothing.")
@options.common
def train(
    name: str,
    settings: tuple[str, ...],
    data: str | None,
    output: Path | None,
    resume: Literal["auto", "never"],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train by the recipe NAME of `longtail recipes`, or by that of a file.

    KEY=VALUE changes single values: optimizer.lr=0.1, loss=lade, loss.alpha=0.1, epochs=10,
    'augment=[crop, flip]'. Stopped at any moment, the same command goes on where it was. On several
    processes: torchrun --nproc-per-node 2 -m longtail train ...
    """
    from longtail.recipes.training.overrides import overridden
    from longtail.recipes.training.reading import read_recipe, recipe_name

    given = [*settings, *([] if data is None else [f"data.path={data}"])]
    recipe = overridden(read_recipe(name), given)
    _check(name, recipe, output, dry_run, resume if is_first() else "auto")
    if dry_run:
        _show_plan(recipe, as_json, quiet)
        return
    assert output is not None
    try:
        with _watching(quiet) as watch:
            from longtail.recipes.run import run_recipe

            result = run_recipe(recipe, output, watch, recipe_name(name))
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", signal.SIGINT)
        raise Interrupted("the same command goes on after the last checkpoint", number) from None
    if is_first():
        _show(result, as_json)
        names = ("report.html", "metrics.json", "model.safetensors")
        closing(result.folder, names, as_json=as_json, quiet=quiet)


def _check(
    name: str,
    recipe: Recipe,
    output: Path | None,
    dry_run: bool,
    resume: Literal["auto", "never"],
) -> None:
    """What can be told before torch is imported."""
    from longtail.recipes.training.checking import RecipeError
    from longtail.recipes.training.data_options import HuggingFace
    from longtail.recipes.training.run_folder import RECIPE, check_folder, is_recipe_of

    place = recipe.data.path
    if place is None:
        raise click.UsageError(
            "the recipe does not say where the images are: give --data PATH, or data.path=PATH"
        )
    # A Hugging Face set may be a name on the hub.
    if not isinstance(recipe.data, HuggingFace) and not os.path.exists(place):
        raise click.UsageError(f"there is no {place}; give the place of the images with --data")
    if output is None and not dry_run:
        raise click.UsageError("say where the run goes: -o RUN")
    if output is not None:
        if is_same(output / RECIPE, name) and not is_recipe_of(output, recipe):
            raise click.UsageError(
                f"{name} is an input, and -o {output} would write over it; take another folder"
            )
        try:
            check_folder(output, recipe, resume)
        except RecipeError as error:  # it is the folder that is wrong
            said, *differences = str(error).splitlines()
            listed = "; ".join(line.strip() for line in differences)
            raise click.UsageError(f"{said} {listed}") from error


@contextmanager
def _watching(quiet: bool) -> Iterator[Watch]:
    """A bar over all steps on a terminal; nothing elsewhere."""
    if not is_shown(quiet):
        yield lambda event: None
        return
    with bars(quiet) as shown:
        task = shown.add_task("reading", total=None, said="")
        yield _follower(shown, task)


def _follower(bar: Progress, task: TaskID) -> Watch:
    from longtail.engine.training import StepEnd

    def watch(event: StepEnd | EpochEnd | str) -> None:
        if isinstance(event, str):
            bar.update(task, description=event, total=None, said="")
        elif isinstance(event, StepEnd):
            done = (event.epoch - 1) * event.steps + event.step
            bar.update(
                task,
                description=f"epoch {event.epoch} of {event.epochs}",
                completed=done,
                total=event.epochs * event.steps,
            )
        else:
            bar.update(task, said=_epoch_in_words(event.row))

    return watch


def _epoch_in_words(row: Mapping[str, float | None]) -> str:
    said = f"loss {row['train_loss']:.3f}"
    held_out = row.get("val_uniform_balanced_accuracy") or row.get("val_balanced_accuracy")
    return said if held_out is None else f"{said}, held out {100 * held_out:.1f} %"


def _show_plan(recipe: Recipe, as_json: bool, quiet: bool) -> None:
    from longtail.recipes.training.checking import plain
    from longtail.recipes.training.yaml_text import write_yaml

    with status("Reading", quiet):
        from longtail.recipes.training.plan import planned

        found = planned(recipe)
    if as_json:
        print_json({"recipe": plain(recipe), "plan": found})
    elif is_first():
        echo(write_yaml(plain(recipe)))
        for name, value in found.items():
            echo(f"{name}: {value}")


def _show(result: RunResult, as_json: bool) -> None:
    from longtail.recipes.training.run_page import headline, metric_table

    if as_json:
        print_json(result.as_json())
        return
    shown = console()
    for split in result.metrics:
        heads, *rows = metric_table(result, split)
        shown.print(rich_table(f"\nOn the {split} part (%)", heads, rows))
    shown.print(headline(result))
