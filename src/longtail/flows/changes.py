"""Which way a metric went, and whether that is more than chance."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from longtail.metrics import Interval

_LESS_IS_BETTER = ("ece", "nll", "brier")


class Outcome(Enum):
    """What came of it, as far as the samples can tell."""

    SAME_AND_SURER = "no sample turned right or wrong, and the log-loss fell"
    SAME = "no sample turned right or wrong, and the log-loss did not fall"
    TOO_FEW = "half of the classes have so few samples that nothing is sure"
    CHANCE = "the headline accuracy changed by no more than chance"
    GAIN = "it rose by more than chance"
    LOSS = "it fell by more than chance"


class Direction(Enum):
    """Which way a metric went."""

    NONE = "it is the same"
    CHANCE = "it changed by no more than chance"
    BETTER = "it is better"
    WORSE = "it is worse"


class Change(NamedTuple):
    """A metric before and after.

    Attributes:
        before: With its 95 % interval.
        after: The same.
        difference: After minus before, with its paired interval where there is one; None where
            one of the two is not known.
        direction: Which way, and whether that is sure.
    """

    before: Interval
    after: Interval
    difference: Interval | None
    direction: Direction


def change_of(
    key: str, before: Interval, after: Interval, gain: Interval | None, enough: bool
) -> Change:
    """How a metric changed.

    Args:
        key: The metric.
        before: With its interval.
        after: The same.
        gain: By how much it became better, paired, where that is known.
        enough: Whether there are enough samples for anything to be sure.
    """
    if before.value is None or after.value is None:
        return Change(before, after, None, Direction.NONE)
    if before.value == after.value:
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
