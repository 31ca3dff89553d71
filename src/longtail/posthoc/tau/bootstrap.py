r"""How far the curve and its best τ would move with other held-out samples.

Samples are drawn again with replacement within each class, as often as it has samples, so that the
weights t(y)/n_y stay. A sample is an interval, so a replicate is one cumulative sum over the sorted
ends, without the logits. The standard error of the value at one τ is then, up to chance,

    √ Σ_y t(y)² · r_y (1 − r_y) / n_y.

A class with a single sample seems certain: its draws are always the same.
"""

from dataclasses import dataclass

import numpy as np

from longtail.core.arrays import Array
from longtail.posthoc.tau.intervals import Floats
from longtail.posthoc.tau.rivals import Indices
from longtail.posthoc.tau.steps import Steps, best_pieces


@dataclass(frozen=True, eq=False)
class TauBootstrap:
    """What samples drawn again say about a curve.

    Attributes:
        standard_error: Of the accuracy under the target, on each piece of the curve.
        best_taus: The best τ of every replicate.
    """

    standard_error: Array
    best_taus: Array

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Between which two numbers the best τ of that share of the replicates lies."""
        if not 0 < level < 1:
            raise ValueError(f"level is the share of replicates inside, in 0 to 1, got {level}")
        tails = np.quantile(np.asarray(self.best_taus), [(1 - level) / 2, (1 + level) / 2])
        return float(tails[0]), float(tails[1])


class Replicates:
    """Class-stratified draws of samples: how often each was drawn."""

    def __init__(self, labels: Indices, seed: int) -> None:
        self._order = np.argsort(labels, kind="stable")
        counts = np.bincount(labels)
        counts = counts[counts > 0]
        self._first = np.repeat(counts.cumsum() - counts, counts)
        self._counts = np.repeat(counts, counts)
        self._random = np.random.default_rng(seed)

    def draw(self) -> Floats:
        """How often each sample was drawn this time."""
        drawn = self._first + self._random.integers(0, self._counts)
        times = np.empty(len(self._order))
        times[self._order] = np.bincount(drawn, minlength=len(self._order))
        return times


def draw_curves(
    steps: Steps, labels: Indices, weights: Floats, replicates: int, seed: int
) -> tuple[Floats, Floats]:
    """The standard error on each piece, and the best τ of each of so many replicates."""
    if replicates < 2:
        raise ValueError(f"a bootstrap needs at least 2 replicates, got {replicates}")
    samples = Replicates(labels, seed)
    center = steps.values(weights)
    squares, best = np.zeros_like(center), np.empty(replicates)
    mass = np.bincount(labels, weights)
    for k in range(replicates):
        drawn = weights * samples.draw()
        # Where samples of a class weigh differently its draws do too, but the class does not.
        drawn *= (mass / np.maximum(np.bincount(labels, drawn), 1e-300))[labels]
        values = steps.values(drawn)
        squares += (values - center) ** 2
        best[k] = best_pieces(steps.taus, values, 1)[0].inner
    return np.sqrt(squares / replicates), best
