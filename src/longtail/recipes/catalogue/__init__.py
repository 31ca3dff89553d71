"""Named recipes: the .toml files beside this one, written as recipe files are, one for each paper.

A table is a recipe, with what it is and where its numbers are from. [settings.NAME] is what several
have in common; they take it up with `base = [NAME, ...]`, own keys coming last.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from longtail.flows.file_names import RECIPE
from longtail.flows.train.reading import RecipeError, merged, read_recipe_file, recipe_from
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import name_of_run

Values: TypeAlias = Mapping[str, Any]
_ENDINGS = (".yaml", ".yml", ".json")


def _read() -> dict[str, Values]:
    recipes: dict[str, Values] = {}
    settings: dict[str, Values] = {}
    for file in files(__name__).iterdir():
        if file.name.endswith(".toml"):
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
            settings |= tables.pop("settings", {})
            recipes |= tables

    def whole(values: Values) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in values.get("base", ()):
            made = merged(made, whole(settings[name]))
        return merged(made, {key: value for key, value in values.items() if key != "base"})

    return {name: whole(recipes[name]) for name in sorted(recipes)}


RECIPES = _read()


def named_recipe(name: str) -> Recipe:
    """The recipe of that name, or a RecipeError with the nearest one."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise RecipeError(
            f"there is no recipe {name!r}; {hint}`longtail recipes` lists all {len(RECIPES)}, and "
            "a file of your own ends in .yaml"
        )
    return recipe_from(RECIPES[name])


def read_recipe(source: str | os.PathLike[str]) -> Recipe:
    """The recipe of that name, or that of a .yaml or .json file, which may say `base: NAME`.

    >>> read_recipe("cifar100-lt-la-quick").loss
    LogitAdjusted(label_smoothing=0.0, tau=1.0)
    """
    text = os.fspath(source)
    if Path(text).is_file():
        return read_recipe_file(text, named_recipe)
    if text.endswith(_ENDINGS):
        raise RecipeError(f"there is no recipe file {text}; `longtail recipes` lists names")
    return named_recipe(text)


def recipe_name(source: str | os.PathLike[str]) -> str:
    """What a run of `read_recipe(source)` is called: the name itself, or that of the file.

    The recipe.yaml of a run is of what that run is called.

    >>> recipe_name("cifar100-lt-la-quick"), recipe_name("my/own.yaml")
    ('cifar100-lt-la-quick', 'own')
    """
    text = os.fspath(source)
    path = Path(text)
    if path.name == RECIPE and (name := name_of_run(path.parent)):
        return name
    return path.stem if text.endswith(_ENDINGS) or path.is_file() else text
