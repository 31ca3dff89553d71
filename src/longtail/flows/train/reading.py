"""Recipes as people write them: a YAML file that may start from another one, and `key=value`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import inspect

from longtail.flows.train.checking import (
    ROOT,
    RecipeError,
    options_of,
    plain,
    recipe_from,
    struct_kinds,
)
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.yaml_text import read_yaml

_BASE = "base"
_TELL_NOTHING = ("data.path", "about", "source", "num_workers")
_KEPT = "path"  # where the data are is no matter of how they are read


def read_recipe_file(
    path: str | os.PathLike[str], named: Callable[[str], Recipe] | None = None
) -> Recipe:
    """The recipe in a .yaml or .json file.

    Args:
        path: The file.
        named: Finds the recipe that a file starts from with `base: NAME`: the file then says only
            what differs. A part that it names anew is replaced; of one that it does not name,
            single values are. Without it a file must be whole, as in the folder of a run.
    """
    try:
        values = read_yaml(Path(path).read_text(encoding="utf-8"))
        if named is None or not isinstance(values, dict) or _BASE not in values:
            return recipe_from(values)
        own = {key: value for key, value in values.items() if key != _BASE}
        base = plain(named(str(values[_BASE])))
        changed = ", ".join(key for key in own if key not in ("about", "source"))
        base["about"] = f"{base['about']} Changed: {changed}."
        return recipe_from(_merged(base, own))
    except ValueError as error:
        raise RecipeError(f"in {os.fspath(path)}: {error}") from None


def overridden(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with some values replaced, one after the other.

    A part that is named anew starts from the defaults of that name.

    Args:
        recipe: What is replaced in.
        settings: As on the command line: "optimizer.lr=0.1", "loss=cross_entropy", "ema=null",
            "augment=[crop, flip]".

    >>> start = recipe_from({"data": "cifar100", "loss": {"name": "lade", "lam": 0.5}})
    >>> overridden(start, ["loss=logit_adjusted", "loss.tau=2"]).loss
    LogitAdjusted(label_smoothing=0.0, tau=2.0)
    >>> overridden(start, ["optimizer.lr=1e-3"]).optimizer.lr
    0.001
    """
    values, before = plain(recipe), set()
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise RecipeError(f"expected key=value, as in optimizer.lr=0.1, got {setting!r}")
        if key in before:
            raise RecipeError(f"{key} is given twice, the second time by {setting!r}; give it once")
        before.add(key)
        _put(values, ROOT, key.split("."), text, setting)
    changes = [setting for setting in settings if setting.partition("=")[0] not in _TELL_NOTHING]
    if changes:
        values["about"] = f"{values['about']} Changed: {', '.join(changes)}.".strip()
    return recipe_from(values)


def _put(
    inside: dict[str, Any], kind: inspect.Type, keys: Sequence[str], text: str, setting: str
) -> None:
    first, *rest = keys
    field = _kind_of(first, kind, inside)
    tag = _tag_field(field)
    if first == _tag_field(kind):
        _rename(inside, first, text)
    elif rest or (tag is not None and text.isidentifier() and text != "null"):
        below = inside.get(first)
        below = inside[first] = {} if below is None else below
        if not isinstance(below, dict):
            raise RecipeError(f"{first} has no keys of its own, got {setting!r}")
        _put(below, field, rest or [str(tag)], text, setting)
    else:
        try:
            inside[first] = _value(text, field)
        except ValueError as error:
            raise RecipeError(f"in {setting!r}: {error}") from None


def _rename(inside: dict[str, Any], tag: str, name: str) -> None:
    """Make it another part: the options of the old one go."""
    if inside.get(tag) == name:
        return
    kept = {key: inside[key] for key in (_KEPT,) if key in inside}
    inside.clear()
    inside.update({tag: name, **kept})


def _kind_of(key: str, kind: inspect.Type, inside: dict[str, Any]) -> inspect.Type:
    """What may stand under a key; anything if there is no such key, which is told later."""
    tag = _tag_field(kind)
    for struct in struct_kinds(kind):
        if tag is None or struct.tag == inside.get(tag):
            for field in struct.fields:
                if field.encode_name == key:
                    return field.type
    return inspect.AnyType()


def _tag_field(kind: inspect.Type) -> str | None:
    structs = struct_kinds(kind)
    return structs[0].tag_field if structs else None


def _value(text: str, kind: inspect.Type) -> Any:
    """The value of a text, which is the text itself where only a text may stand."""
    options = [option for option in options_of(kind) if not isinstance(option, inspect.NoneType)]
    if options and all(isinstance(option, inspect.StrType) for option in options):
        return None if text in ("null", "~") else text
    return read_yaml(text)


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
