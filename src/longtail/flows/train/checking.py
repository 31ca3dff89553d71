"""A recipe from plain values; what is wrong with one is named with what is allowed.

msgspec checks types and ranges. Names it does not know it only refuses, so they are looked at
first: keys, kinds and choices, each with the nearest one there is.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from longtail.flows.train.recipe import Recipe

ROOT = inspect.type_info(Recipe)


class RecipeError(ValueError):
    """A recipe that cannot be followed, and why."""


def recipe_from(values: Any) -> Recipe:
    """The recipe that plain values describe, or a RecipeError.

    A part may be given by its name alone where it needs nothing more: `loss: cross_entropy`.

    >>> recipe_from({"data": "cifar100", "loss": {"name": "logit_adjusted", "tau": 1.5}}).loss.tau
    1.5
    >>> recipe_from({"data": "cifar100", "optimiser": {"lr": 0.1}})
    Traceback (most recent call last):
    ...
    longtail...RecipeError: there is no key optimiser; did you mean optimizer? ...
    """
    if not isinstance(values, Mapping):
        raise RecipeError(f"a recipe is a mapping of keys to values, got {values!r:.60}")
    full = expanded(_with_new_names(values), ROOT, "")
    try:
        return msgspec.convert(full, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(_in_words(str(error), full)) from None


def _with_new_names(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same in the words of today, for run folders and models that were written before."""
    target = values.get("target")
    if isinstance(target, Mapping) and target.get("criterion") == "balanced_error":
        return {**values, "target": {**target, "criterion": "accuracy_under_target"}}
    return values


def plain(recipe: Recipe) -> dict[str, Any]:
    """The recipe as plain values, in the order of its fields."""
    values: dict[str, Any] = msgspec.to_builtins(recipe)
    return values


def expanded(value: Any, kind: inspect.Type, path: str) -> Any:
    """The value with all names checked, and parts that were given by name alone written out."""
    structs = struct_kinds(kind)
    if structs and isinstance(value, str):
        tag = structs[0].tag_field
        if tag is not None and not _takes_text(kind):
            value = {tag: value}
    if structs and isinstance(value, Mapping):
        return _expanded_struct(value, structs, path)
    _check_choice(value, kind, path)
    if isinstance(value, float) and not math.isfinite(value):
        raise RecipeError(f"{path} must be a finite number, got {value}")
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, (list, tuple)):
        return [expanded(part, kind.item_type, f"{path}[{at}]") for at, part in enumerate(value)]
    return value


def options_of(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The kinds that a union has, or the kind itself."""
    if isinstance(kind, inspect.UnionType):
        for part in kind.types:
            yield from options_of(part)
    elif isinstance(kind, inspect.Metadata):
        yield from options_of(kind.type)
    else:
        yield kind


def struct_kinds(kind: inspect.Type) -> list[inspect.StructType]:
    """The sections a kind may be."""
    return [option for option in options_of(kind) if isinstance(option, inspect.StructType)]


def _expanded_struct(
    value: Mapping[Any, Any], structs: list[inspect.StructType], path: str
) -> dict[str, Any]:
    tag = structs[0].tag_field
    chosen = structs[0]
    if tag is not None:
        by_name = {str(struct.tag): struct for struct in structs}
        if tag not in value:
            raise RecipeError(
                f"{path} must say its {tag}, one of {', '.join(by_name)}; got {dict(value)}"
            )
        name = value[tag]
        if not isinstance(name, str) or name not in by_name:
            raise RecipeError(f"{path}.{tag} cannot be {name!r}; {_instead(name, by_name)}")
        chosen = by_name[name]
    fields = {field.encode_name: field.type for field in chosen.fields}
    made: dict[str, Any] = {}
    for key, part in value.items():
        inside = f"{path}.{key}" if path else str(key)
        if key == tag:
            made[key] = part
        elif key not in fields:
            owner = f" of {path} ({value[tag]})" if tag else f" of {path}" if path else ""
            raise RecipeError(
                f"there is no key {inside}; {_instead(key, fields, f'the keys{owner} are')}"
            )
        else:
            made[key] = expanded(part, fields[key], inside)
    return made


def _takes_text(kind: inspect.Type) -> bool:
    return any(isinstance(option, inspect.StrType) for option in options_of(kind))


def _check_choice(value: Any, kind: inspect.Type, path: str) -> None:
    """A RecipeError if a value must be one of some and is not; msgspec would not say which."""
    options = list(options_of(kind))
    allowed = [
        choice
        for option in options
        if isinstance(option, inspect.LiteralType)
        for choice in option.values
    ]
    if not allowed or value in allowed:
        return
    numbers = (inspect.IntType, inspect.FloatType)
    others = [option for option in options if not isinstance(option, inspect.LiteralType)]
    if others and not isinstance(value, str):
        return
    also = " or a number" if any(isinstance(option, numbers) for option in others) else ""
    raise RecipeError(f"{path} cannot be {value!r}; {_instead(value, map(str, allowed))}{also}")


def _instead(value: object, allowed: Iterable[str], lead: str = "take one of") -> str:
    names = list(allowed)
    near = difflib.get_close_matches(str(value), names, n=1)
    listed = f"{lead} {', '.join(names) or 'none'}"
    if not near:
        return listed
    return f"did you mean {near[0]}? {listed[:1].upper()}{listed[1:]}"


def _in_words(message: str, values: Mapping[str, Any]) -> str:
    """Msgspec's sentence with our way to say where, and the value that is there."""
    reason, _, where = message.replace("`", "").partition(" - at ")
    of_key, _, path = where.rpartition("$")
    path = path.removeprefix(".")
    if of_key:
        return f"the keys of {path} must be text; write them in quotes"
    if reason.startswith("Object missing required field"):
        return f"{path or 'the recipe'} needs a value for {reason.rsplit(' ', 1)[1]}"
    expected, _, _ = reason.partition(", got")
    if not reason.startswith("Expected"):
        return reason
    return f"{path} must be {expected.removeprefix('Expected ')}, got {_found(values, path)!r}"


def _found(values: Any, path: str) -> Any:
    for key in path.replace("[", ".").replace("]", "").split("."):
        values = values[int(key)] if isinstance(values, list) else values[key]
    return values
