"""Named recipes: plain values, written as in a recipe file, with where their numbers are from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeAlias

from longtail.recipes.training.checking import RecipeError, recipe_from
from longtail.recipes.training.recipe import Recipe

Values: TypeAlias = Mapping[str, object]

RECIPES: dict[str, Values] = {}


def named(name: str, about: str, source: str, values: Values) -> None:
    """Put a recipe into the catalogue.

    Args:
        name: What it is called.
        about: What it is, in a line.
        source: Where its numbers are from.
        values: All that is not as by default.
    """
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
