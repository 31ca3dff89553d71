"""Recipes by name, or from a YAML file that may start from a named one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from longtail.recipes.catalogue import named_recipe
from longtail.recipes.training.checking import RecipeError, plain, recipe_from
from longtail.recipes.training.recipe import Recipe
from longtail.recipes.training.yaml_text import read_yaml

_ENDINGS = (".yaml", ".yml", ".json")
_BASE = "base"


def read_recipe(source: str | os.PathLike[str]) -> Recipe:
    """The recipe of that name, or that of a .yaml or .json file.

    A file may say `base: NAME` and then only what differs from it. A part of the base that the file
    names anew is replaced; of one that it does not name, single values are.

    >>> read_recipe("cifar100-lt-la-quick").loss
    LogitAdjusted(label_smoothing=0.0, tau=1.0)
    """
    text = os.fspath(source)
    if not text.endswith(_ENDINGS) and not Path(text).is_file():
        return named_recipe(text)
    if not Path(text).is_file():
        raise RecipeError(f"there is no recipe file {text}; `longtail recipes` lists names")
    try:
        values = read_yaml(Path(text).read_text(encoding="utf-8"))
        return _on_its_base(values)
    except (RecipeError, ValueError) as error:
        raise RecipeError(f"in {text}: {error}") from None


def recipe_name(source: str | os.PathLike[str]) -> str:
    """What a run of `read_recipe(source)` is called: the name itself, or that of the file.

    >>> recipe_name("cifar100-lt-la-quick"), recipe_name("my/own.yaml")
    ('cifar100-lt-la-quick', 'own')
    """
    text = os.fspath(source)
    return Path(text).stem if text.endswith(_ENDINGS) or Path(text).is_file() else text


def _on_its_base(values: Any) -> Recipe:
    if not isinstance(values, dict) or _BASE not in values:
        return recipe_from(values)
    own = {key: value for key, value in values.items() if key != _BASE}
    base = plain(named_recipe(str(values[_BASE])))
    changed = ", ".join(key for key in own if key not in ("about", "source"))
    base["about"] = f"{base['about']} Changed: {changed}."
    return recipe_from(_merged(base, own))


def _merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in own.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and _same_part(below, value):
            made[key] = _merged(below, value)
        else:
            made[key] = value
    return made


def _same_part(below: dict[str, Any], value: dict[str, Any]) -> bool:
    return all(value.get(tag, below.get(tag)) == below.get(tag) for tag in ("name", "kind"))
