"""Checks of the numbers that methods are given: one a class, or one at all."""

import math
import operator
from typing import Any, Literal, get_args

import numpy as np

from longtail.core.arrays import ArrayLike, Floats, as_numpy


def check_per_class(
    values: ArrayLike,
    num_classes: int,
    name: str,
    least: Literal["positive", "zero", "any"] = "positive",
    *,
    what: str = "classes",
) -> Floats:
    """One finite number a class, as a float64 copy, or a ValueError."""
    checked = np.array(as_numpy(values), np.float64)
    if checked.shape != (num_classes,):
        raise ValueError(
            f"{name} must have one number for each of {num_classes} {what}, "
            f"got shape {checked.shape}"
        )
    enough, wanted = {
        "positive": (checked > 0, "positive and finite"),
        "zero": (checked >= 0, "finite, none negative"),
        "any": (True, "finite"),
    }[least]
    wrong = ~(enough & np.isfinite(checked))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"{name} must be {wanted}, got {checked[at]:g} for class {at}")
    return checked


def check_whole(value: int, name: str, least: float = -math.inf) -> int:
    """A whole number that is not below `least`, or a ValueError: NaN and infinity are none."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {value}") from None
    if whole < least:
        raise ValueError(f"{name} must be {least:g} or more, got {value}")
    return whole


def check_seed(seed: int) -> int:
    """A whole number that torch's generators take, or a ValueError."""
    if not -(2**63) <= check_whole(seed, "seed") < 2**64:
        raise ValueError(f"seed must lie in -2**63 to 2**64 - 1, got {seed}")
    return seed


def check_number(
    value: float,
    name: str,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    below: float = math.inf,
) -> float:
    """A finite number that is not below `least`, not above `most` and below `below`."""
    try:
        is_finite = math.isfinite(value)
    except (TypeError, OverflowError):  # no number at all, or one that no float can be
        is_finite = False
    if not (is_finite and least <= value <= most and value < below):
        ends = [f"{least:g} or more"] if least > -math.inf else []
        ends += [f"{most:g} or less"] if most < math.inf else []
        ends += [f"below {below:g}"] if below < math.inf else []
        wanted = f" of {' and '.join(ends)}" if ends else ""
        raise ValueError(f"{name} must be a finite number{wanted}, got {value!r:.80}")
    return float(value)


def check_choice(value: object, choices: Any, name: str) -> None:
    """A ValueError unless the value is one of those that the Literal `choices` lists."""
    *most, last = (f'"{choice}"' for choice in get_args(choices))
    if value not in get_args(choices):
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")


def check_weights(weights: ArrayLike | None, num_samples: int) -> Floats:
    """What each sample counts, or a ValueError; without weights each counts one."""
    if weights is None:
        return np.ones(num_samples)
    checked = as_numpy(weights).astype(np.float64)
    if checked.shape != (num_samples,):
        raise ValueError(
            f"weights must be one number for each of {num_samples} samples, "
            f"got shape {checked.shape}; for class weights pass weights[labels]"
        )
    if not (np.isfinite(checked) & (checked >= 0)).all() or not checked.sum() > 0:
        raise ValueError(
            "weights must be finite, none negative and not all zero, "
            f"got {checked.min():g} to {checked.max():g}"
        )
    return checked
