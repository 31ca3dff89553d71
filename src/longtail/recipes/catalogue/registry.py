"""Named recipes: plain values, written as in a recipe file, with where their numbers are from."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from longtail.flows.train.reading import RecipeError, read_recipe_file, recipe_from
from longtail.flows.train.recipe import Recipe

Values: TypeAlias = Mapping[str, object]

RECIPES: dict[str, Values] = {}
_ENDINGS = (".yaml", ".yml", ".json")


def named(name: str, about: str, source: str, values: Values) -> None:
    """Put a recipe into the catalogue: what it is, where its numbers are from, what it changes."""
    RECIPES[name] = {"about": about, "source": source, **values}


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

    >>> recipe_name("cifar100-lt-la-quick"), recipe_name("my/own.yaml")
    ('cifar100-lt-la-quick', 'own')
    """
    text = os.fspath(source)
    return Path(text).stem if text.endswith(_ENDINGS) or Path(text).is_file() else text
