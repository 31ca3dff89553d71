"""Kinds of numbers: what the signature of a loss, a head or a sampler says of its options.

For Python they are plain numbers; dataclasses check them with `check_fields`, other classes
themselves. A recipe is checked against them before the class is imported, so nothing here imports
anything heavy.
"""

import math
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NonNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Fraction: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
FractionBelowOne: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=1)]
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Seed: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]  # as many as NumPy has
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]  # a side of an image
Byte: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=255)]
Width: TypeAlias = Annotated[int, msgspec.Meta(ge=32, multiple_of=32)]  # of layers in groups

_NOUNS = {float: "a number", int: "a whole number", bool: "True or False", str: "a text"}


def check_fields(owner: object) -> None:
    """A ValueError if a number, choice or flag of a dataclass is not of the kind it is said to be.

    >>> from dataclasses import make_dataclass
    >>> check_fields(make_dataclass("Steps", [("decay", Positive)])(decay=-1.0))
    Traceback (most recent call last):
    ...
    ValueError: decay must be a number above 0, got -1.0
    """
    owner_type: type = type(owner)
    for name, kind in _plain_fields(owner_type).items():
        value = getattr(owner, name)
        plain = value.item() if hasattr(value, "item") else value
        try:
            msgspec.convert(plain, kind)
            valid = not isinstance(plain, float) or math.isfinite(plain)
        except msgspec.ValidationError:
            valid = False
        if not valid:
            raise ValueError(f"{name} must be {_in_words(kind)}, got {value!r}")


@cache
def _plain_fields(owner: type) -> dict[str, Any]:
    hints = get_type_hints(owner, include_extras=True)
    return {name: kind for name, kind in hints.items() if _is_plain(kind)}


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType, tuple):
        return all(map(_is_plain, get_args(kind)))
    return kind in (*_NOUNS, NoneType, Ellipsis) or get_origin(kind) in (Annotated, Literal)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is Annotated:
        base, meta = get_args(kind)[:2]
        bounds = {"above": meta.gt, "at least": meta.ge, "below": meta.lt, "at most": meta.le}
        limits = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return f"{_NOUNS[base]} {' and '.join(limits)}"
    if get_origin(kind) is tuple:
        return f"a tuple, each of it {_in_words(get_args(kind)[0])}"
    if get_args(kind):
        return " or ".join(map(_in_words, get_args(kind)))
    return _NOUNS.get(kind, "None")
