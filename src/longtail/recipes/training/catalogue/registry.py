"""Named recipes: a function each, its docstring what `longtail recipes` says of it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable

import msgspec

from longtail.recipes.training.checking import RecipeError
from longtail.recipes.training.recipe import Recipe

RECIPES: dict[str, Callable[[], Recipe]] = {}


def named(make: Callable[[], Recipe]) -> Callable[[], Recipe]:
    """Put a recipe into the catalogue, under the name of its function with dashes.

    The first paragraph of the docstring becomes its `about`, the rest its `source`.
    """
    about, _, source = inspect.cleandoc(make.__doc__ or "").partition("\n\n")

    def complete() -> Recipe:
        words = {"about": " ".join(about.split()), "source": " ".join(source.split())}
        return msgspec.structs.replace(make(), **words)

    RECIPES[make.__name__.replace("_", "-")] = complete
    return complete


def named_recipe(name: str) -> Recipe:
    """The recipe of that name, or a RecipeError with the nearest one."""
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise RecipeError(
            f"there is no recipe {name!r}; {hint}`longtail recipes` lists all {len(RECIPES)}, and "
            "a file of your own ends in .yaml"
        )
    return RECIPES[name]()
