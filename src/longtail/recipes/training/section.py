"""What the parts of a recipe have in common, and the kinds of numbers they hold."""

from typing import Annotated, TypeAlias

import msgspec

Above: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
NotBelow: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
ShareBelowOne: TypeAlias = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Ratio: TypeAlias = Annotated[float, msgspec.Meta(ge=1)]
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Seed: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]  # as many as NumPy has
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]  # a side of an image


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a recipe: frozen, and nothing in it that is not known."""


class Named(Section, frozen=True, tag_field="name"):
    """A part that is one of several, told apart by `name`."""
