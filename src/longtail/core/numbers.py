"""Checks of the numbers that methods are given: one a class, or one at all."""

import math
from typing import Literal

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike, as_tensor


def check_per_class(
    values: ArrayLike,
    num_classes: int,
    name: str,
    least: Literal["positive", "zero", "any"] = "positive",
) -> Tensor:
    """One finite number a class, as a float64 copy on the CPU, or a ValueError."""
    given = as_tensor(values).detach().to("cpu", torch.float64, copy=True)
    if given.shape != (num_classes,):
        raise ValueError(
            f"{name} must have one number for each of {num_classes} classes, "
            f"got shape {tuple(given.shape)}"
        )
    low = {"positive": given > 0, "zero": given >= 0, "any": given.isfinite()}[least]
    wrong = ~(low & given.isfinite())
    if wrong.any():
        at = int(wrong.nonzero()[0])
        wanted = {"positive": "positive and finite", "zero": "finite, none negative"}
        raise ValueError(
            f"{name} must be {wanted.get(least, 'finite')}, got {given[at]:g} for class {at}"
        )
    return given


def check_number(value: float, name: str, least: float = -math.inf) -> float:
    """A finite number that is not below `least`, or a ValueError."""
    if not (math.isfinite(value) and value >= least):
        wanted = "" if least == -math.inf else f" of {least:g} or more"
        raise ValueError(f"{name} must be a finite number{wanted}, got {value}")
    return float(value)
