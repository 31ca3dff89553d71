"""Recipes as people write them: a YAML file that may start from another one, and `key=value`.

msgspec checks types and ranges. Names it does not know it only refuses, so they are looked at
first: keys, kinds and choices, each refused with what is allowed and the nearest one there is.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from longtail.flows.train.recipe import Recipe
from longtail.flows.train.yaml_text import read_yaml, text_of

_ROOT = inspect.type_info(Recipe)
_BASE = "base"
_TELL_NOTHING = ("data.path", "about", "source", "num_workers")
_KEPT = "path"  # where the data are is no matter of how they are read


class RecipeError(ValueError):
    """A recipe that cannot be followed, and why."""


def plain(recipe: Recipe) -> dict[str, Any]:
    """The recipe as plain values, in the order of its fields."""
    values: dict[str, Any] = msgspec.to_builtins(recipe)
    return values


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
        raise RecipeError(
            f"a recipe is a mapping of keys to values, got {values!r:.60}; one that has a name, or "
            "is in a file, is read by longtail.recipes.catalogue.read_recipe"
        )
    full = _expanded(_in_words_of_today(values), _ROOT, "")
    try:
        return msgspec.convert(full, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(_in_words(str(error), full)) from None


def _in_words_of_today(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Run folders and models that were written before have two words that were replaced."""
    current = dict(values)
    target, data = current.get("target"), current.get("data")
    if isinstance(target, Mapping) and target.get("criterion") == "balanced_error":
        current["target"] = {**target, "criterion": "accuracy_under_target"}
    if isinstance(data, Mapping) and "held_out" in data and "validation_share" not in data:
        new_names = {"held_out": "validation_share"}
        current["data"] = {new_names.get(key, key): value for key, value in data.items()}
    return current


def read_recipe_file(
    path: str | os.PathLike[str], named: Callable[[str], Recipe] | None = None
) -> Recipe:
    """The recipe in a .yaml or .json file.

    A file that starts from another recipe with `base: NAME`, which `named` finds, says only what
    differs. A part that it names is replaced; of one that it does not name, single values are.
    Without `named` a file must be whole, as in the folder of a run.
    """
    try:
        values = read_yaml(text_of(path))
        if named is None or not isinstance(values, dict) or _BASE not in values:
            return recipe_from(values)
        own = {key: value for key, value in values.items() if key != _BASE}
        base = plain(named(str(values[_BASE])))
        changed = ", ".join(key for key in own if key not in ("about", "source"))
        base["about"] = f"{base['about']} Changed: {changed}."
        return recipe_from(merged(base, own))
    except ValueError as error:
        raise RecipeError(f"in {os.fspath(path)}: {error}") from None


def overridden(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with some values replaced, one after the other, as on the command line.

    Such as "optimizer.lr=0.1", "loss=cross_entropy", "ema=null", "augment=[crop, flip]", and of a
    part in a list "augment.crop.padding=2". A part that is named starts from the defaults of
    that name.

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
        _put(values, _ROOT, key.split("."), text, setting)
    changes = [setting for setting in settings if setting.partition("=")[0] not in _TELL_NOTHING]
    if changes:
        values["about"] = f"{values['about']} Changed: {', '.join(changes)}.".strip()
    return recipe_from(values)


def _members(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The kinds that a union has, or the kind itself."""
    if isinstance(kind, inspect.UnionType):
        for part in kind.types:
            yield from _members(part)
    elif isinstance(kind, inspect.Metadata):
        yield from _members(kind.type)
    else:
        yield kind


def _structs(kind: inspect.Type) -> tuple[list[inspect.StructType], str | None]:
    """The sections a kind may be, and the key that tells them apart."""
    structs = [member for member in _members(kind) if isinstance(member, inspect.StructType)]
    return structs, structs[0].tag_field if structs else None


def _expanded(value: Any, kind: inspect.Type, path: str) -> Any:
    """The value with all names checked, and parts that were given by name alone written out."""
    structs, tag = _structs(kind)
    takes_text = any(isinstance(member, inspect.StrType) for member in _members(kind))
    if tag is not None and isinstance(value, str) and not takes_text:
        value = {tag: value}
    if structs and isinstance(value, Mapping):
        return _expanded_struct(value, structs, tag, path)
    _check_choice(value, kind, path)
    if isinstance(value, float) and not math.isfinite(value):
        raise RecipeError(f"{path} must be a finite number, got {value}")
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, (list, tuple)):
        return [_expanded(part, kind.item_type, f"{path}[{at}]") for at, part in enumerate(value)]
    return value


def _expanded_struct(
    value: Mapping[Any, Any], structs: list[inspect.StructType], tag: str | None, path: str
) -> dict[str, Any]:
    chosen, owner = structs[0], f" of {path}" if path else ""
    if tag is not None:
        by_name = {str(struct.tag): struct for struct in structs}
        if tag not in value:
            raise RecipeError(
                f"{path} must say its {tag}, one of {', '.join(by_name)}; got {dict(value)}"
            )
        name = value[tag]
        if not isinstance(name, str) or name not in by_name:
            raise RecipeError(f"{path}.{tag} cannot be {name!r}; {_instead(name, by_name)}")
        chosen, owner = by_name[name], f" of {path} ({name})"
    fields = {field.encode_name: field.type for field in chosen.fields}
    made: dict[str, Any] = {}
    for key, part in value.items():
        inside = f"{path}.{key}" if path else str(key)
        if key != tag and key not in fields:
            listed = _instead(key, fields, f"the keys{owner} are")
            raise RecipeError(f"there is no key {inside}; {listed}")
        made[key] = part if key == tag else _expanded(part, fields[key], inside)
    return made


def _check_choice(value: Any, kind: inspect.Type, path: str) -> None:
    """A RecipeError if a value must be one of some and is not; msgspec would not say which."""
    members = list(_members(kind))
    literals = [member for member in members if isinstance(member, inspect.LiteralType)]
    allowed = [choice for literal in literals for choice in literal.values]
    if not allowed or value in allowed:
        return
    if len(literals) < len(members) and not isinstance(value, str):
        return
    numbers = (inspect.IntType, inspect.FloatType)
    also = " or a number" if any(isinstance(member, numbers) for member in members) else ""
    raise RecipeError(f"{path} cannot be {value!r}; {_instead(value, map(str, allowed))}{also}")


def _instead(value: object, allowed: Iterable[str], lead: str = "take one of") -> str:
    names = list(allowed)
    near = difflib.get_close_matches(str(value), names, n=1)
    listed = f"{lead} {', '.join(names) or 'none'}"
    return f"did you mean {near[0]}? {listed[:1].upper()}{listed[1:]}" if near else listed


def _in_words(message: str, values: Any) -> str:
    """Msgspec's sentence with our way to say where, and the value that is there."""
    reason, _, where = message.replace("`", "").partition(" - at ")
    of_key, _, path = where.rpartition("$")
    path = path.removeprefix(".")
    if of_key:
        return f"the keys of {path} must be text; write them in quotes"
    if reason.startswith("Object missing required field"):
        return f"{path or 'the recipe'} needs a value for {reason.rsplit(' ', 1)[1]}"
    if not reason.startswith("Expected"):
        return reason
    for key in path.replace("[", ".").replace("]", "").split("."):
        values = values[int(key)] if isinstance(values, list) else values[key]
    expected = reason.partition(", got")[0].removeprefix("Expected ")
    return f"{path} must be {expected}, got {values!r}"


def _put(
    inside: dict[str, Any], kind: inspect.Type, keys: Sequence[str], text: str, setting: str
) -> None:
    """Set a value under its keys; a part whose tag is set becomes another one."""
    first, *rest = keys
    structs, own_tag = _structs(kind)
    if first == own_tag:
        if inside.get(first) != text:  # the options of the old one go
            kept = {key: inside[key] for key in (_KEPT,) if key in inside}
            inside.clear()
            inside.update({first: text, **kept})
        return
    # What may stand under the key; anything if there is no such key, which is refused later.
    chosen = [each for each in structs if own_tag is None or each.tag == inside.get(own_tag)]
    kinds = [field.type for each in chosen for field in each.fields if field.encode_name == first]
    field = kinds[0] if kinds else inspect.AnyType()
    items = [kind.item_type for kind in _members(field) if isinstance(kind, inspect.VarTupleType)]
    if len(rest) > 1 and items and (list_tag := _structs(items[0])[1]):
        listed = [{list_tag: m} if isinstance(m, str) else m for m in inside.get(first) or ()]
        inside[first] = listed
        _put(_member(listed, list_tag, first, rest[0]), items[0], rest[1:], text, setting)
        return
    tag = _structs(field)[1]
    if rest or (tag is not None and text.isidentifier() and text != "null"):
        below = inside.get(first)
        below = inside[first] = {} if below is None else below
        if not isinstance(below, dict):
            raise RecipeError(f"{first} has no keys of its own, got {setting!r}")
        _put(below, field, rest or [str(tag)], text, setting)
        return
    try:
        inside[first] = _value(text, field)
    except ValueError as error:
        raise RecipeError(f"in {setting!r}: {error}") from None


def _member(parts: Iterable[Any], tag: str, key: str, name: str) -> dict[str, Any]:
    """Of a list of parts the one of that name."""
    by_name = {str(part.get(tag)): part for part in parts if isinstance(part, dict)}
    if name not in by_name:
        raise RecipeError(f"{key} has no {name}; {_instead(name, by_name, 'it has')}")
    return by_name[name]


def _value(text: str, kind: inspect.Type) -> Any:
    """The value of a text, which is the text itself where only a text may stand."""
    members = [member for member in _members(kind) if not isinstance(member, inspect.NoneType)]
    if members and all(isinstance(member, inspect.StrType) for member in members):
        return None if text in ("null", "~") else text
    return read_yaml(text)


def merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The values of one recipe over those of another; parts of one name or kind key by key."""

    def part(below: Any, value: Any) -> Any:
        sections = isinstance(below, dict) and isinstance(value, dict)
        same = sections and all(
            value.get(tag, below.get(tag)) == below.get(tag) for tag in ("name", "kind")
        )
        return merged(below, value) if same else value

    return base | {key: part(base.get(key), value) for key, value in own.items()}
