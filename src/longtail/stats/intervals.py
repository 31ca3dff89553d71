r"""A value between the ends of its 95 % interval, and how the ends are found.

Of S ≥ 2 runs the interval is Student's over seeds,  mean ± t(S − 1) · s/√S:  what other seeds would
give on these same samples. Of one run it is that of the samples drawn anew within each class: what
this model would give on other samples. Neither holds the other source of variation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

import numpy as np

from longtail.core.arrays import Floats, Numbers
from longtail.stats.distributions import NORMAL, student_reach


@dataclass(frozen=True)
class Interval:
    """A number with the ends of its 95 % interval, which are None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def reach(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def below(self) -> float | None:
        """How far the lower end is from the value."""
        return None if self.value is None or self.low is None else self.value - self.low

    @property
    def above(self) -> float | None:
        """How far the upper end is from the value."""
        return None if self.value is None or self.high is None else self.high - self.value

    @property
    def is_above_zero(self) -> bool:
        """Whether the whole interval is above zero: a gain that is more than chance."""
        return self.low is not None and self.low > 0

    @property
    def is_below_zero(self) -> bool:
        """Whether the whole interval is below zero: a loss that is more than chance."""
        return self.high is not None and self.high < 0

    def overlaps(self, other: "Interval") -> bool:
        """Whether the two have a number in common; unknown ones have not."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return False
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Estimate(Interval):
    """A metric of a method over its runs, whose values are `runs`."""

    over: Literal["seeds", "samples"] | None = None  # what the interval is over
    runs: tuple[float, ...] = ()


def estimate(runs: Sequence[Interval]) -> Estimate:
    """The mean over runs with its interval; without one where a value is infinite.

    >>> made = estimate([Interval(0.40), Interval(0.42), Interval(0.44)])
    >>> made.value, made.low, made.high, made.over
    (0.420, 0.370, 0.470, 'seeds')
    """
    values = tuple(run.value for run in runs if run.value is not None)
    if not values:
        return Estimate(None)
    mean = fmean(values)
    if not all(map(math.isfinite, values)):
        return Estimate(mean, runs=values)
    if len(values) > 1:
        reach = student_reach(0.05, len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return Estimate(mean, mean - reach, mean + reach, "seeds", values)
    low, high = runs[0].low, runs[0].high
    return Estimate(mean, low, high, None if low is None else "samples", values)


def normal_interval(
    value: float, variance: float, least: float = -math.inf, most: float = math.inf
) -> Interval:
    """The value ± 1.96 standard deviations, between least and most; none where one is infinite."""
    if not math.isfinite(value) or not math.isfinite(variance):
        return Interval(value)
    reach = NORMAL * math.sqrt(variance)
    return Interval(value, max(least, value - reach), min(most, value + reach))


def quantile_interval(value: float, draws: Numbers) -> Interval:
    """Between the 2.5 and 97.5 % quantiles of what was drawn, and up to the value itself."""
    low, high = np.quantile(draws, [0.025, 0.975]).tolist()
    return Interval(value, min(low, value), max(high, value))


def wilson(share: Floats | float, samples: Floats | float) -> tuple[Floats, Floats]:
    """The 95 % interval of a share of so many samples (Wilson, 1927).

    >>> low, high = wilson(1.0, 10.0)
    >>> float(low), float(high)
    (0.722, 1.0)
    """
    z = NORMAL**2 / np.asarray(samples)
    center = (share + z / 2) / (1 + z)
    reach = np.sqrt(z * share * (1 - share) + z**2 / 4) / (1 + z)
    return np.maximum(0.0, center - reach), np.minimum(1.0, center + reach)


def correlation_interval(correlation: float, pairs: int, level: float = 0.05) -> Interval:
    """Of a rank correlation of so many pairs: Fisher's z, with the error of Bonett and Wright.

        tanh(artanh ρ ± z(level) · √((1 + ρ²/2)/(n − 3)))

    Of a perfect order it is that of the largest ρ below one, 1 − 12/(n³ − n), and up to one: four
    pairs are in such an order by chance too often to say anything. There is none of three or fewer.

    >>> made = correlation_interval(0.5, 100)
    >>> made.low, made.high
    (0.326, 0.641)
    """
    if pairs < 4 or not math.isfinite(correlation):
        return Interval(None if math.isnan(correlation) else correlation)
    most = 1 - 12 / (pairs**3 - pairs)
    inside = min(max(correlation, -most), most)
    reach = student_reach(level, math.inf) * math.sqrt((1 + inside**2 / 2) / (pairs - 3))
    low, high = (math.tanh(math.atanh(inside) + end) for end in (-reach, reach))
    return Interval(correlation, min(low, correlation), max(high, correlation))
