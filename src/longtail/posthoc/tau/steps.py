r"""A weighted sum of intervals: a step function of τ, by one sort of their ends.

Piece k lies between the ends τ_k and τ_{k+1}. A sample that is right on [start, stop) adds its
weight from the piece that opens at `start` on, and takes it back at `stop`: cumulative sums.
"""

from typing import NamedTuple

import numpy as np

from longtail.posthoc.tau.intervals import Floats, Intervals
from longtail.posthoc.tau.rivals import Indices

# Sums of the same weights in another order differ by less; a sample's weight is larger.
_DIGITS = 12


class Steps(NamedTuple):
    """Where the steps are, and which of them each sample makes.

    Attributes:
        taus: The ends, ascending, none twice.
        opens: The first piece on which each sample is right; past the last one if it never is.
        closes: The first piece after those.
    """

    taus: Floats
    opens: Indices
    closes: Indices

    @classmethod
    def of(cls, right: Intervals) -> "Steps":
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
