r"""A method's metric over its runs, with a 95 % interval that says what it is over.

With S ≥ 2 runs it is Student's over seeds,  mean ± t(S − 1) · s/√S:  what other seeds would give on
these same samples. With one run it is that of the samples drawn anew within each class: what this
model would give on other samples. Neither holds the other source of variation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from longtail.metrics import Measured
from longtail.metrics.student import reach


@dataclass(frozen=True)
class Estimate:
    """A metric of a method.

    Attributes:
        value: The mean over runs; None where the metric does not exist.
        low: The lower end of its 95 % interval, None where there is none.
        high: The upper end.
        over: What the interval is over.
        runs: The value of each run.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    over: Literal["seeds", "samples"] | None = None
    runs: tuple[float, ...] = ()

    @property
    def reach(self) -> float | None:
        """Half the length of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def estimate(measured: Sequence[Measured]) -> Estimate:
    """The mean over runs with its interval; without one where a value is infinite.

    >>> found = estimate([Measured(0.40), Measured(0.42), Measured(0.44)])
    >>> found.value, found.low, found.high, found.over
    (0.420, 0.370, 0.470, 'seeds')
    """
    values = tuple(each.value for each in measured if each.value is not None)
    if not values:
        return Estimate(None)
    mean = fmean(values)
    if not all(map(math.isfinite, values)):
        return Estimate(mean, runs=values)
    if len(values) > 1:
        wide = reach(0.05, len(values) - 1) * stdev(values) / math.sqrt(len(values))
        return Estimate(mean, mean - wide, mean + wide, "seeds", values)
    low, high = measured[0].low, measured[0].high
    return Estimate(mean, low, high, None if low is None else "samples", values)
