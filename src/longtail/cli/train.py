"""`longtail train`: follow a recipe from images to a report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from longtail.engine.training import EpochEnd, StepEnd
    from longtail.recipes.run import Watch
    from longtail.recipes.training.recipe import Recipe
    from longtail.recipes.training.results import RunResult


@click.command()
@click.argument("name", metavar="NAME|FILE.yaml")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", type=click.Path(), help="Where the images are: the recipe's data.path.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="The folder for recipe, versions, log, checkpoint, model, scores, metrics and report.",
)
@click.option(
    "--resume",
    type=click.Choice(["auto", "never"]),
    default="auto",
    show_default=True,
    help="Go on with the run in RUN if it is of this recipe, or refuse to.",
)
@click.option("--dry-run", is_flag=True, help="Read the data and build all, but train nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, not tables.")
@click.option("--quiet", is_flag=True, help="No progress.")
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
    augment=[crop, flip]. Stopped at any moment, the same command goes on where it was. On several
    processes: torchrun --nproc-per-node 2 -m longtail train ...
    """
    from longtail.recipes.training.checking import RecipeError
    from longtail.recipes.training.overrides import overridden
    from longtail.recipes.training.reading import read_recipe

    is_main = os.environ.get("RANK", "0") == "0"
    try:
        given = [*settings, *([] if data is None else [f"data.path={data}"])]
        recipe = overridden(read_recipe(name), given)
        _check(recipe, output, dry_run, resume if is_main else "auto")
    except RecipeError as error:
        raise click.UsageError(str(error)) from None
    if dry_run:
        with _told_simply():
            _show_plan(recipe, as_json)
        return
    assert output is not None
    with _told_simply(), _progress(quiet or not is_main) as watch:
        from longtail.recipes.run import run_recipe

        result = run_recipe(recipe, output, watch)
    if is_main:
        _show(result, as_json)


def _check(
    recipe: Recipe, output: Path | None, dry_run: bool, resume: Literal["auto", "never"]
) -> None:
    """What can be told before torch is imported."""
    from longtail.recipes.training.checking import RecipeError
    from longtail.recipes.training.data_options import HuggingFace
    from longtail.recipes.training.run_folder import check_folder

    place = recipe.data.path
    if place is None:
        raise RecipeError(
            "the recipe does not say where the images are: give --data PATH, or data.path=PATH"
        )
    # A Hugging Face set may be a name on the hub.
    if not isinstance(recipe.data, HuggingFace) and not os.path.exists(place):
        raise RecipeError(f"there is no {place}; give the place of the images with --data")
    if output is None and not dry_run:
        raise RecipeError("say where the run goes: -o RUN")
    if output is not None:
        check_folder(output, recipe, resume)


@contextmanager
def _told_simply() -> Iterator[None]:
    """A wrong recipe is wrong usage, also where only the data could tell; no tracebacks."""
    from longtail.recipes.training.checking import RecipeError

    try:
        yield
    except RecipeError as error:
        raise click.UsageError(str(error)) from None
    except FloatingPointError as error:  # a loss that is no longer finite
        raise click.ClickException(str(error)) from None


@contextmanager
def _progress(quiet: bool) -> Iterator[Watch]:
    """A bar over all steps on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, said="")
        yield _follower(bar, task)


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


def _show_plan(recipe: Recipe, as_json: bool) -> None:
    from longtail.recipes.training.checking import plain
    from longtail.recipes.training.plan import planned
    from longtail.recipes.training.yaml_text import write_yaml

    found = planned(recipe)
    if as_json:
        click.echo(json.dumps({"recipe": plain(recipe), "plan": found}, indent=2))
        return
    click.echo(write_yaml(plain(recipe)))
    for name, value in found.items():
        click.echo(f"{name}: {value}")


def _show(result: RunResult, as_json: bool) -> None:
    from longtail.recipes.training.run_page import headline, metric_table

    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console()
        for split in result.metrics:
            heads, *rows = metric_table(result, split)
            table = Table(title=f"\nOn the {split} part (%)", title_justify="left")
            for at, name in enumerate(heads):
                table.add_column(name, justify="right" if at else "left", no_wrap=not at)
            for row in rows:
                table.add_row(*row)
            console.print(table)
        console.print(Text(headline(result)))
    click.echo(f"\nIn {result.folder}: report.html, metrics.json, model.safetensors", err=as_json)
