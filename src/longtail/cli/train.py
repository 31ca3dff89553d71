"""From recipes to models to features.

`longtail train` follows a recipe from images to a report, `longtail recipes` lists the named ones,
and `longtail features` writes what the backbone of a run makes of images.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli import options, terminal
from longtail.cli.command import Command
from longtail.cli.errors import Interrupted
from longtail.flows import file_names
from longtail.group_edges import GroupEdges

if TYPE_CHECKING:
    from longtail.engine.training import EpochEnd
    from longtail.flows.train.recipe import BatchNorm, Recipe
    from longtail.flows.train.result import TrainResult
    from longtail.flows.train.train import Progress


@click.command(
    cls=Command, files=file_names.TRAIN, short_help="Train by a recipe, from images to a report."
)
@click.argument("name", metavar="NAME|FILE.yaml", shell_complete=options.recipe_names)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--data", type=options.PATH, help="Where the images are: the recipe's data.path.")
@options.output_folder(
    "Folder for recipe, versions, log, checkpoint, model, scores, metrics and report.",
    metavar="RUN",
)
@options.choice(
    "--resume",
    ("auto", "never"),
    "Go on with the run in RUN if it is of this recipe, or refuse to.",
)
@options.groups("those of the recipe")
@click.option("--dry-run", is_flag=True, help="Read the data and build all, but train nothing.")
@options.common
def train(
    name: str,
    settings: tuple[str, ...],
    data: Path | None,
    output: Path | None,
    resume: Literal["auto", "never"],
    groups: GroupEdges | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train by the recipe NAME of `longtail recipes`, or by that of a file.

    KEY=VALUE changes single values: optimizer.lr=0.1, loss=lade, loss.alpha=0.1, epochs=10,
    'augment=[crop, flip]'. Stopped at any moment, the same command resumes it. On several
    processes: torchrun --nproc-per-node 2 -m longtail train ...
    """
    from longtail.flows.train.reading import overridden
    from longtail.recipes.catalogue import read_recipe, recipe_name

    asked = {"data.path": data, "groups": groups}
    changes = [f"{key}={value}" for key, value in asked.items() if value is not None]
    recipe = overridden(read_recipe(name), [*settings, *changes])
    _check(name, recipe, output, resume if terminal.is_first() else "auto")
    if dry_run:
        _show_plan(recipe, as_json, quiet)
        return
    if output is None:
        raise click.UsageError("say where the run goes: -o RUN")
    try:
        with _progress(quiet) as progress:
            from longtail.flows.train.train import train as train_recipe
            from longtail.report import save

            result = train_recipe(
                recipe,
                output,
                name=recipe_name(name),
                page=save,
                progress=progress,
                command=terminal.command(),
            )
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", signal.SIGINT)
        raise Interrupted("the same command resumes after the last checkpoint", number) from None
    if terminal.is_first():
        _show(result, as_json)
        names = (file_names.PAGE, file_names.METRICS, file_names.MODEL)
        terminal.closing(result.folder, names, as_json=as_json, quiet=quiet)


def _check(
    name: str, recipe: Recipe, output: Path | None, resume: Literal["auto", "never"]
) -> None:
    """What can be refused before torch is imported."""
    from longtail.flows.train.reading import RecipeError
    from longtail.flows.train.run_folder import (
        check_data,
        check_folder,
        is_recipe_of,
        start_file,
    )

    try:
        check_data(recipe.data)
        start_file(recipe)
        if output is None:
            return
        if file_names.are_one_file(output / file_names.RECIPE, name) and not is_recipe_of(
            output, recipe
        ):
            raise click.UsageError(
                f"{name} is an input, and -o {output} would write over it; take another folder"
            )
        check_folder(output, recipe, resume)
    except RecipeError as error:  # it is the data or the folder that is wrong
        raise click.UsageError(str(error)) from error


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A bar over all steps on a terminal; nothing elsewhere."""
    with terminal.bars(quiet) as bar:
        task = bar.add_task("reading", total=None, detail="")
        from longtail.engine.training import StepEnd

        def progress(event: StepEnd | EpochEnd | str) -> None:
            if isinstance(event, str):
                bar.update(task, description=event, total=None, detail="")
            elif isinstance(event, StepEnd):
                bar.update(
                    task,
                    description=f"epoch {event.epoch} of {event.epochs}",
                    completed=(event.epoch - 1) * event.steps + event.step,
                    total=event.epochs * event.steps,
                )
            else:
                bar.update(task, detail=_epoch_in_words(event.row))

        yield progress


def _epoch_in_words(row: Mapping[str, float | None]) -> str:
    text = f"loss {row['train_loss']:.3f}"
    kinds = (row.get(f"val_{kind}") for kind in ("uniform_balanced_accuracy", "balanced_accuracy"))
    accuracy = next((value for value in kinds if value is not None), None)
    return text if accuracy is None else f"{text}, validation {100 * accuracy:.1f} %"


def _show_plan(recipe: Recipe, as_json: bool, quiet: bool) -> None:
    from longtail.flows.train.reading import plain
    from longtail.flows.train.yaml_text import write_yaml

    with terminal.status("Reading", quiet):
        from longtail.flows.train.train import planned
        from longtail.report.pages.train import plan_in_words

        plan = planned(recipe)
    if as_json:
        terminal.print_json({"recipe": plain(recipe), "plan": plan._asdict()})
    elif terminal.is_first():
        terminal.echo("\n".join([write_yaml(plain(recipe)), *plan_in_words(plan)]))


def _show(result: TrainResult, as_json: bool) -> None:
    from longtail.report.names import groups_in_words
    from longtail.report.pages.train import headline, metric_table

    if as_json:
        terminal.print_json(result.as_json())
        return
    shown = terminal.console()
    for split in result.metrics:
        heads, *rows = metric_table(result, split)
        title, caption = f"\nOn the {split} part (%)", groups_in_words(result.edges)
        shown.print(terminal.rich_table(title, heads, rows, caption=caption))
    shown.print(headline(result))


@click.command(cls=Command, short_help="List the named recipes, or print one.")
@click.argument("name", required=False, shell_complete=options.recipe_names)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@options.common
def recipes(name: str | None, settings: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """List the named recipes, or print the one called NAME as YAML, every value of it.

    NAME may be a .yaml file too. What is printed can be saved, changed and given to
    `longtail train`.
    """
    from longtail.flows.train.reading import overridden, plain
    from longtail.flows.train.yaml_text import write_yaml
    from longtail.recipes.catalogue import RECIPES, named_recipe, read_recipe

    if name is not None:
        values = plain(overridden(read_recipe(name), settings))
        if as_json:
            terminal.print_json(values)
        else:
            terminal.echo(write_yaml(values), nl=False)
        return
    # Quick ones first, then by data.
    order = sorted(RECIPES, key=lambda key: (not key.endswith("-quick"), key))
    rows = {key: named_recipe(key) for key in order}
    if as_json:
        terminal.print_json(
            [{"name": k, "about": r.about, "data": r.data.needed} for k, r in rows.items()]
        )
        return
    _list(rows)
    hint = "longtail recipes NAME prints one; longtail train NAME --data PATH -o RUN trains it."
    terminal.note(hint, as_json=as_json, quiet=quiet)


def _list(rows: dict[str, Recipe]) -> None:
    """A line a recipe, under what data it needs."""
    groups: dict[str, list[str]] = {}
    width = max(map(len, rows)) + 2
    for name, recipe in rows.items():
        groups.setdefault(recipe.data.needed, []).append(f"  {name:<{width}}{recipe.about}")
    for data, lines in groups.items():
        terminal.echo("\n".join([f"Needs {data}:", *lines, ""]))


@click.command(cls=Command, short_help="Write the features of images by the backbone of a run.")
@click.argument("model", type=options.INPUT, metavar="RUN|MODEL")
@click.argument("data", type=options.PATH)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@options.choice(
    "--batch-norm",
    ("keep", "reestimate", "reestimate_class_balanced"),
    "Batch-norm statistics as training left them, or estimated again on the training images: on "
    "each once, or on all classes alike.",
)
@options.whole_number("--batch-size", 256, "Images at a time.")
@options.output_file("The .safetensors file to write; longtail fit reads it.")
@options.common
def features(
    model: Path,
    data: Path,
    settings: tuple[str, ...],
    batch_norm: BatchNorm,
    batch_size: int,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the features of DATA by the backbone of a run, all parts in one file.

    RUN is a folder of `longtail train`, MODEL its model.safetensors. DATA is read as the recipe of
    the run says, with the same cut and the same validation part; KEY=VALUE changes that:
    data.kind=folder data.size=224, data.validation_share=0.
    """
    if output.suffix.lower() != ".safetensors":
        raise click.UsageError(f"{output} must end in .safetensors to take features; rename it")
    with terminal.status("Computing features", quiet):
        from longtail.flows.features import features as extract

        written = extract(
            model, data, output, settings, batch_norm=batch_norm, batch_size=batch_size
        )
    sizes = {split: len(part.labels) for split, part in written.parts.items()}
    if as_json:
        numbers = {"dim": written.dim, "classes": written.num_classes, "parts": sizes}
        terminal.print_json({"file": str(output)} | numbers)
        return
    listed = ", ".join(f"{number:,} of {split}" for split, number in sizes.items())
    terminal.echo(f"{output}: {written.dim} numbers for each of {listed}")
