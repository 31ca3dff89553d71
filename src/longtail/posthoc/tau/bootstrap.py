r"""How far the curve and its best τ would move with other held-out samples.

Samples are drawn again with replacement within each class, as often as it has samples, so that the
weights t(y)/n_y stay. A sample is an interval, so a replicate is one cumulative sum over the sorted
ends, without the logits. The standard error of the value at one τ is then, up to chance,

    √ Σ_y t(y)² · r_y (1 − r_y) / n_y.

The draws of a class with a single sample are always the same, which would make it seem certain: its
variance is taken for that of a sample of any class, A (1 − A) with A the accuracy. The best τ is
that of samples that are drawn each on its own, Poisson(1) times, so that it moves with every class,
and with the one sample that speaks against another τ: in a third of the replicates it is not there.
"""

from dataclasses import dataclass

import numpy as np

from longtail.core.arrays import Array
from longtail.posthoc.tau.intervals import Floats
from longtail.posthoc.tau.rivals import Indices
from longtail.posthoc.tau.steps import Steps, best_pieces
from longtail.stats import Replicates, alike


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
        return float(np.std(np.asarray(self.best_taus)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Between which two numbers the best τ of that share of the replicates lies."""
        if not 0 < level < 1:
            raise ValueError(f"level is the share of replicates inside, in 0 to 1, got {level}")
        tails = np.quantile(np.asarray(self.best_taus), [(1 - level) / 2, (1 + level) / 2])
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
