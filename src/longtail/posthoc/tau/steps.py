r"""A weighted sum of intervals: a step function of τ, and how far it moves with other samples.

Piece k lies between the ends τ_k and τ_{k+1}. A sample that is right on [start, stop) adds its
weight from the piece that opens at `start` on, and takes it back at `stop`: one sort of the ends,
and cumulative sums.

For its errors samples are drawn again with replacement within each class, as often as it has
samples, so that the weights t(y)/n_y stay. A replicate is one more cumulative sum, without the
logits. The standard error of the value at one τ is then, up to chance,

    √ Σ_y t(y)² · r_y (1 − r_y) / n_y.

The draws of a class with a single sample are always the same, which would make it seem certain: its
variance is taken for that of a sample of any class, A (1 − A) with A the accuracy. The best τ is
that of samples that are drawn each on its own, Poisson(1) times, so that it moves with every class,
and with the one sample that speaks against another τ: in a third of the replicates it is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Array, as_numpy
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.validation import Floats, Indices
from longtail.stats import Replicates, alike

# Sums of the same weights in another order differ by less; a sample's weight is larger.
_DIGITS = 12


class Steps(NamedTuple):
    """Where the steps are, and which of them each sample makes."""

    taus: Floats  # the ends, ascending, none twice
    opens: Indices  # the first piece on which each sample is right; past the last if it never is
    closes: Indices  # the first piece after those

    @classmethod
    def of(cls, right: Intervals) -> Steps:
        """The steps of samples that are right on these intervals."""
        never = ~(right.start < right.stop)
        start = np.where(never, np.inf, right.start)
        stop = np.where(never, np.inf, right.stop)
        ends, at = np.unique(np.concatenate([start, stop]), return_inverse=True)
        finite = np.isfinite(ends)
        piece = finite.cumsum()  # the first one is before all finite ends
        piece[ends == np.inf] = finite.sum() + 1  # where nothing opens or closes any more
        opens, closes = np.split(piece[at], 2)
        return cls(ends[finite], opens, closes)

    def values(self, weights: Floats) -> Floats:
        """The weights of the samples that are right, summed, on each piece."""
        pieces = len(self.taus) + 2
        change = np.bincount(self.opens, weights, pieces)
        change -= np.bincount(self.closes, weights, pieces)
        return np.round(change.cumsum()[:-1], _DIGITS)


class Piece(NamedTuple):
    """The function is `value` on [low, high)."""

    low: float
    high: float
    value: float

    @property
    def inner(self) -> float:
        """1 if it lies inside, where nothing speaks against it; else the middle.

        Of a piece with one end it is the point nearest to 1 that lies one inside.
        """
        low, high = self.low, self.high
        if low <= 1 < high:
            return 1.0
        if np.isfinite(low) and np.isfinite(high):
            point = low / 2 + high / 2
        else:
            point = low + 1 if np.isfinite(low) else high - 1
        return float(max(low, min(point, np.nextafter(high, -np.inf))))


def best_pieces(taus: Floats, values: Floats, most: int) -> list[Piece]:
    """The pieces with the highest values, at most so many.

    Neighbours of the same value are one piece. Of equal ones the nearest to τ = 1 comes first, and
    last those of a single number, where a tie of two logits is right by its order alone.
    """
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    edges = np.concatenate([[-np.inf], taus, [np.inf]])
    ends = np.append(first[1:], len(values))
    if len(first) > most:
        least = np.partition(values[first], -most)[-most]
        high_enough = values[first] >= least
        first, ends = first[high_enough], ends[high_enough]
    low, high = edges[first], edges[ends]
    from_one = np.maximum(0, np.maximum(low - 1, 1 - high))
    single = high <= np.nextafter(low, np.inf)
    ranked = np.lexsort((from_one, single, -values[first]))[:most]
    return [Piece(float(low[k]), float(high[k]), float(values[first[k]])) for k in ranked]


@dataclass(frozen=True, eq=False)
class TauBootstrap:
    """What samples drawn again say about a curve.

    Attributes:
        standard_error: Of the accuracy under the target, on each piece of the curve.
        best_taus: The best τ of every replicate.
    """

    standard_error: Array
    best_taus: Array

    @property
    def spread(self) -> float:
        """The standard deviation of the best τ over the replicates: its standard error."""
        return float(np.std(as_numpy(self.best_taus)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Between which two numbers the best τ of that share of the replicates lies."""
        if not 0 < level < 1:
            raise ValueError(f"level is the share of replicates inside, in 0 to 1, got {level}")
        tails = np.quantile(as_numpy(self.best_taus), [(1 - level) / 2, (1 + level) / 2])
        return float(tails[0]), float(tails[1])


class SingleDraws:
    """Draws of samples each on its own, whatever is drawn of its class.

    Samples of one class that are right on the same τ are one sample that counts t times and is
    drawn Poisson(t) times, and which comes first does not matter: repetitions and weights draw
    alike.
    """

    def __init__(self, steps: Steps, labels: Indices, weights: Floats, times: Floats) -> None:
        which = alike(labels, steps.opens, steps.closes)
        first = np.unique(which, return_index=True)[1]
        self._times = np.bincount(which, times)
        self._weights = np.bincount(which, weights)
        self._steps = Steps(steps.taus, steps.opens[first], steps.closes[first])

    def best(self, random: np.random.Generator) -> float:
        """The best τ of one draw."""
        drawn = self._weights * random.poisson(self._times) / self._times
        return best_pieces(self._steps.taus, self._steps.values(drawn), 1)[0].inner


def draw_curves(
    steps: Steps, labels: Indices, weights: Floats, times: Floats, replicates: int, seed: int
) -> tuple[Floats, Floats]:
    """The standard error on each piece, and the best τ of each of so many replicates."""
    if replicates < 2:
        raise ValueError(f"a bootstrap needs at least 2 replicates, got {replicates}")
    samples, random = Replicates(labels, seed), np.random.default_rng(seed)
    singly = SingleDraws(steps, labels, weights, times)
    center = steps.values(weights)
    squares, best = np.zeros_like(center), np.empty(replicates)
    mass = np.bincount(labels, weights)
    for k in range(replicates):
        drawn = weights * samples.draw()
        # Where samples of a class weigh differently its draws do too, but the class does not.
        drawn *= (mass / np.maximum(np.bincount(labels, drawn), 1e-300))[labels]
        squares += (steps.values(drawn) - center) ** 2
        best[k] = singly.best(random)
    alone = np.square(weights[np.bincount(labels)[labels] == 1]).sum()
    return np.sqrt(squares / replicates + alone * center * (1 - center)), best
