r"""Learning rates over time: what the base rate is multiplied by at a step, counted from 0.

With a warm-up of w steps that starts at a (`warmup`, `warmup_start`), the factor grows linearly:

    a + (1 − a)·(s + 1)/w    at the steps s = 0 ... w − 1,  so that the last of them has all of it.

A schedule knows no epochs: what it is called with is its unit. Published recipes count in epochs;
`schedule.stretched(steps_per_epoch)` is the same curve in steps, `ByEpoch` keeps the factor of an
epoch for all of its steps, as most published code does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Self, TypeAlias

from longtail.ranges import Count, Fraction, NonNegative, Positive, Whole, check_fields

Schedule: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """The base rate, after a warm-up if there is one.

    >>> [Constant(warmup=4)(step) for step in (0, 3, 100)]
    [0.25, 1.0, 1.0]
    """

    warmup: Whole = 0
    warmup_start: Fraction = 0.0

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, step: int) -> float:
        """The factor at a step."""
        return _warm(step, self.warmup, self.warmup_start)

    def stretched(self, by: int) -> Self:
        """The same with every unit divided into `by` steps."""
        return replace(self, warmup=self.warmup * by)


@dataclass(frozen=True)
class Steps:
    """Falls by the factor `decay` from each milestone on, one on top of the other.

    >>> lade = Steps((120, 160), 0.01, warmup=5, warmup_start=1 / 3)
    >>> [0.2 * lade(epoch) for epoch in (0, 1, 4, 119, 120, 160)]
    [0.0933, 0.12, 0.2, 0.2, 0.002, 0.00002]
    """

    milestones: tuple[Count, ...]
    decay: Positive = 0.1
    warmup: Whole = 0
    warmup_start: Fraction = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        rising = all(a < b for a, b in pairwise(self.milestones))
        if not rising or self.warmup > min(self.milestones, default=math.inf):
            raise ValueError(
                "milestones must rise and come after the warm-up, got "
                f"milestones={self.milestones}, warmup={self.warmup}"
            )

    def __call__(self, step: int) -> float:
        """The factor at a step."""
        passed = sum(step >= milestone for milestone in self.milestones)
        return _warm(step, self.warmup, self.warmup_start) * self.decay**passed

    def stretched(self, by: int) -> Self:
        """The same with every unit divided into `by` steps."""
        milestones = tuple(milestone * by for milestone in self.milestones)
        return replace(self, milestones=milestones, warmup=self.warmup * by)


@dataclass(frozen=True)
class Cosine:
    """Falls along half a cosine, from 1 when the warm-up is over to `end` at step `total`.

    >>> [Cosine(total=10)(step) for step in (0, 5, 9, 10)]
    [1.0, 0.5, 0.0245, 0.0]
    """

    total: Whole
    end: Fraction = 0.0
    warmup: Whole = 0
    warmup_start: Fraction = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.warmup < self.total:
            raise ValueError(
                "total must be more steps than the warm-up, "
                f"got total={self.total}, warmup={self.warmup}"
            )

    def __call__(self, step: int) -> float:
        """The factor at a step."""
        if step < self.warmup:
            return _warm(step, self.warmup, self.warmup_start)
        done = min(1.0, (step - self.warmup) / (self.total - self.warmup))
        return _between(1.0, self.end, done, "cosine")

    def stretched(self, by: int) -> Self:
        """The same with every unit divided into `by` steps."""
        return replace(self, total=self.total * by, warmup=self.warmup * by)


@dataclass(frozen=True)
class OneCycle:
    """Up from `start` to 1 at the step `peak`, and down to `end` at step `total`.

    The peak may lie between two steps; below 1 it is a share of `total`. With the shape "cosine"
    both ways are half a cosine.

    >>> cycle = OneCycle(total=10, peak=2, start=0.2)
    >>> [cycle(step) for step in (0, 1, 2, 6, 10)]
    [0.2, 0.6, 1.0, 0.5, 0.0]
    """

    total: Whole
    peak: NonNegative
    start: Fraction = 0.0
    end: Fraction = 0.0
    shape: Literal["linear", "cosine"] = "linear"

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.peak < self.total:
            raise ValueError(
                f"peak must lie from 0 to before total, got peak={self.peak}, total={self.total}"
            )

    def __call__(self, step: int) -> float:
        """The factor at a step."""
        peak = self.peak if self.peak >= 1 else self.peak * self.total
        if step < peak:
            return _between(self.start, 1.0, step / peak, self.shape)
        done = min(1.0, (step - peak) / (self.total - peak))
        return _between(1.0, self.end, done, self.shape)

    def stretched(self, by: int) -> Self:
        """The same with every unit divided into `by` steps."""
        peak = self.peak * by if self.peak >= 1 else self.peak
        return replace(self, total=self.total * by, peak=peak)


@dataclass(frozen=True)
class ByEpoch:
    """A schedule that counts epochs, called with steps: one factor for each epoch.

    >>> [ByEpoch(Constant(warmup=2), steps_per_epoch=3)(step) for step in range(5)]
    [0.5, 0.5, 0.5, 1.0, 1.0]
    """

    schedule: Schedule
    steps_per_epoch: Count

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, step: int) -> float:
        """The factor at a step."""
        return self.schedule(step // self.steps_per_epoch)


def _warm(step: int, warmup: int, start: float) -> float:
    if step + 1 >= warmup:  # exactly 1, which the sum below might miss by rounding
        return 1.0
    return start + (1 - start) * (step + 1) / warmup


def _between(first: float, last: float, done: float, shape: Literal["linear", "cosine"]) -> float:
    """From `first` when nothing is done to `last` when all is, exact at both ends."""
    share = done if shape == "linear" else (1 - math.cos(math.pi * done)) / 2
    return first * (1 - share) + last * share
