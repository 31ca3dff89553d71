"""`longtail recipes`: what can be trained by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.completion import recipe_names
from longtail.cli.outputs import note, print_json
from longtail.cli.terminal import echo

if TYPE_CHECKING:
    from longtail.flows.train.recipe import Recipe


@click.command(cls=Command, short_help="List the named recipes, or print one.")
@click.argument("name", required=False, shell_complete=recipe_names)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@options.common
def recipes(name: str | None, settings: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """List the named recipes, or print the one called NAME as YAML, every value of it.

    NAME may be a .yaml file too. What is printed can be saved, changed and given to
    `longtail train`.
    """
    from longtail.flows.train.checking import plain
    from longtail.flows.train.reading import overridden
    from longtail.flows.train.yaml_text import write_yaml
    from longtail.recipes.catalogue import RECIPES, named_recipe, read_recipe

    if name is not None:
        values = plain(overridden(read_recipe(name), settings))
        if as_json:
            print_json(values)
        else:
            echo(write_yaml(values), nl=False)
        return
    rows = {key: named_recipe(key) for key in sorted(RECIPES, key=_order)}
    if as_json:
        listed = [
            {"name": key, "about": recipe.about, "data": data_needed(recipe)}
            for key, recipe in rows.items()
        ]
        print_json(listed)
        return
    _show(rows)
    note(
        "longtail recipes NAME prints one; longtail train NAME --data PATH -o RUN trains it.",
        as_json=as_json,
        quiet=quiet,
    )


def data_needed(recipe: Recipe) -> str:
    """Which data a recipe needs, in a few words."""
    from longtail.flows.train.data_sets import Cifar10, CifarSet, ImageFolder, ImageLists

    data = recipe.data
    if isinstance(data, CifarSet):
        return "CIFAR-10" if isinstance(data, Cifar10) else "CIFAR-100"
    if isinstance(data, ImageLists):
        return f"images and {data.train}"
    return "a folder class/file" if isinstance(data, ImageFolder) else "an .npz file"


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
        echo("\n".join([f"Needs {data}:", *lines, ""]))
