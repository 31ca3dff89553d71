"""The first table: which metrics it has, which way each went, and whether that is sure.

    accuracy                of the samples as they are, each counting once
    accuracy_under_target   where labels follow the target
    balanced_accuracy       where all classes count alike

The accuracy that was asked for comes first. Where two are one number, as under the uniform target,
only the first is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.stats import Interval

# Which is the first is decided by the target; the others follow in this order.
ACCURACIES = ("accuracy_under_target", "balanced_accuracy", "accuracy")
GROUPS = ("many", "medium", "few")
_LESS_IS_BETTER = ("ece", "nll", "brier")
_ROUNDING = 1e-12  # what sums in another order differ by


def main_accuracy(target: Prior | None) -> str:
    """The accuracy that was asked for: that under the target, by its own name if it is uniform.

    >>> main_accuracy(Prior.of([3, 1])), main_accuracy(Prior.uniform(2)), main_accuracy(None)
    ('accuracy_under_target', 'balanced_accuracy', 'accuracy')
    """
    if target is None:
        return "accuracy"
    is_uniform = target.is_close(Prior.uniform(target.num_classes))
    return "balanced_accuracy" if is_uniform else "accuracy_under_target"


def shown_accuracies(shares: Mapping[str, npt.ArrayLike], target: Prior | None) -> list[str]:
    """The accuracies from top to bottom by what each class counts for: those that differ.

    >>> half = np.array([0.5, 0.5])
    >>> shares = {"accuracy": half, "balanced_accuracy": half}
    >>> shown_accuracies(shares | {"accuracy_under_target": [0.75, 0.25]}, Prior.of([3, 1]))
    ['accuracy_under_target', 'balanced_accuracy']
    >>> shown_accuracies(shares | {"accuracy_under_target": half}, Prior.uniform(2))
    ['balanced_accuracy']
    """
    first = main_accuracy(target)
    return distinct_accuracies(shares, sorted(ACCURACIES, key=lambda key: key != first))


def distinct_accuracies(shares: Mapping[str, npt.ArrayLike], order: Sequence[str]) -> list[str]:
    """Those of `order` in which classes count otherwise than in all before."""
    shown: list[str] = []
    for key in order:
        if key in shares and not any(
            np.allclose(shares[key], shares[above], rtol=1e-9, atol=0) for above in shown
        ):
            shown.append(key)
    return shown


class Outcome(Enum):
    """What came of it, as far as the samples can tell."""

    SAME_AND_SURER = "no sample turned right or wrong, and the log-loss fell"
    SAME = "no sample turned right or wrong, and the log-loss did not fall"
    TOO_FEW = "half of the classes have so few samples that nothing is sure"
    CHANCE = "the main accuracy changed by no more than chance"
    GAIN = "it rose by more than chance"
    LOSS = "it fell by more than chance"


class Direction(Enum):
    """Which way a metric went."""

    NONE = "it is the same"
    CHANCE = "it changed by no more than chance"
    BETTER = "it is better"
    WORSE = "it is worse"


class Change(NamedTuple):
    """A metric before and after."""

    before: Interval  # with its 95 % interval
    after: Interval  # the same
    difference: Interval | None  # after minus before, with its paired interval where there is one
    direction: Direction  # which way, and whether that is sure


def change_of(
    key: str, before: Interval, after: Interval, gain: Interval | None, enough: bool
) -> Change:
    """How a metric changed, by how much it became better where that is known, and if sure."""
    if before.value is None or after.value is None:
        return Change(before, after, None, Direction.NONE)
    if math.isclose(before.value, after.value, rel_tol=0, abs_tol=_ROUNDING):
        return Change(before, after, Interval(0.0), Direction.NONE)
    change, less = after.value - before.value, key in _LESS_IS_BETTER
    if gain is None or gain.low is None or gain.high is None:
        difference, sure = Interval(change), not before.overlaps(after)
    else:
        # The gain is of an accuracy; of an error it is the other way round.
        ends = (-gain.high, -gain.low) if less else (gain.low, gain.high)
        difference, sure = Interval(change, *ends), gain.is_above_zero or gain.is_below_zero
    direction = Direction.BETTER if (change < 0) == less else Direction.WORSE
    return Change(before, after, difference, direction if sure and enough else Direction.CHANCE)
