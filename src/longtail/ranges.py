"""Kinds of numbers: what the signature of a loss, a head or a sampler says of its options.

For Python they are plain numbers, and the class checks them. A recipe is checked against them
before the class is imported, so nothing here imports anything heavy.
"""

from typing import Annotated, TypeAlias

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
Width: TypeAlias = Annotated[int, msgspec.Meta(ge=32, multiple_of=32)]  # of layers in groups
