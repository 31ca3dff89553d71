"""`longtail recipes`: what can be trained by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from longtail.recipes.training.recipe import Recipe


@click.command()
@click.argument("name", required=False)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def recipes(name: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """List the named recipes, or print the one called NAME as YAML, every value of it.

    NAME may be a .yaml file too. What is printed can be saved, changed and given to
    `longtail train`.
    """
    from longtail.recipes.training.catalogue import RECIPES
    from longtail.recipes.training.checking import RecipeError, plain
    from longtail.recipes.training.overrides import overridden
    from longtail.recipes.training.reading import read_recipe
    from longtail.recipes.training.yaml_text import write_yaml

    if name is not None:
        try:
            found = plain(overridden(read_recipe(name), settings))
        except RecipeError as error:
            raise click.UsageError(str(error)) from None
        click.echo(json.dumps(found, indent=2) if as_json else write_yaml(found), nl=as_json)
        return
    rows = {key: RECIPES[key]() for key in sorted(RECIPES, key=_order)}
    if as_json:
        listed = [
            {"name": key, "about": recipe.about, "data": data_needed(recipe)}
            for key, recipe in rows.items()
        ]
        click.echo(json.dumps(listed, indent=2))
        return
    _show(rows)


def data_needed(recipe: Recipe) -> str:
    """Which data a recipe needs, in a few words."""
    from longtail.recipes.training.data_options import (
        Cifar10,
        CifarSet,
        ImageFolder,
        ImageLists,
    )

    data = recipe.data
    if isinstance(data, CifarSet):
        return "CIFAR-10" if isinstance(data, Cifar10) else "CIFAR-100"
    if isinstance(data, ImageLists):
        return f"images and {data.train}"
    return "a folder train/class/file" if isinstance(data, ImageFolder) else "an .npz file"


def _order(name: str) -> tuple[bool, str]:
    """Quick ones first, then by data."""
    return not name.endswith("-quick"), name


def _show(rows: dict[str, Recipe]) -> None:
    """A line a recipe, under what data it needs."""
    groups: dict[str, list[str]] = {}
    width = max(map(len, rows)) + 2
    for name, recipe in rows.items():
        groups.setdefault(data_needed(recipe), []).append(f"  {name:<{width}}{recipe.about}")
    for data, lines in groups.items():
        click.echo("\n".join([f"Needs {data}:", *lines, ""]))
    click.echo(
        "longtail recipes NAME prints one; longtail train NAME --data PATH -o RUN trains it."
    )
