r"""How τ was chosen on validation samples, and how well they determine it.

    accuracy_under_target   Σ_y t(y)·recall_y, exactly (`curve`); balanced accuracy for uniform t
    nll, brier              proper scores (`criteria`)
    ece                     calibration error with 20 bins (`criteria`)

Every criterion is meant under the target t: a sample of class y counts t(y)/n_y, whatever their own
frequencies.

The best τ of a few samples, or of a short move, is mostly chance. If the logits carry what they
declare, τ = 1 is right whatever the samples say; a model that departs from that needs a τ near 1.
So before the samples are looked at τ is normal around 1 with standard deviation ½, which has 95 %
of it between 0, no move, and 2, twice the move. They add an optimum τ̂ with a standard error s, and
what follows from both is

    τ = 1 + trust·(τ̂ − 1),        1/trust = 1 + (s/½)² + (0.05/(½·length))².                   (1)

s says how much of τ the samples see. The last term is what they cannot: no model's logits are right
to better than a twentieth, and τ̂ mends that as far as it happens to lie along the move. `length`
is the deviation of log t − log c over the classes, in units of the logits' own where a temperature
has made these smaller than 1. Where target and carried prior are near each other it is next to
nothing, any τ does about the same, and τ stays at 1. With many samples and a move that changes
decisions τ is the optimum. For weight normalisation no τ is exact and 1 is but where it starts
from, so there it is let go further: the standard deviation is 2 in place of the first ½.

½ and 2 were chosen on the simulated worlds of `benchmarks/tau_shrinkage.py`, whose table of other
constants shows what those would give. These worlds do not tell a twentieth from nothing or a tenth:
it stands for what they do not have, models that are wrong in other ways.
"""

from collections.abc import Callable
from math import hypot, inf, isinf
from typing import NamedTuple

import numpy as np

from longtail.core import Prior
from longtail.core.arrays import ArrayLike, Numbers
from longtail.core.numbers import check_choice
from longtail.posthoc.tau import Criterion, TauChoice, criteria
from longtail.posthoc.tau.curve import curve_along
from longtail.posthoc.tau.paths import Shift, TauPath, predict
from longtail.posthoc.validation import Validation, Weighted, effective_samples
from longtail.stats import NORMAL

SPREAD, WIDE_SPREAD = 0.5, 2.0
_MISFIT = 0.05
_NO_MOVE = 1e-9  # what rounding leaves between two priors that are the same
_COARSE = 15  # points of the grid for a score that is not convex


def choose_tau(
    path: TauPath,
    validation: Validation,
    target: Prior,
    criterion: Criterion,
    training: Prior | None,
    within: ArrayLike | None = None,
) -> TauChoice:
    """The best τ along a path, by a criterion that is meant under the target.

    `training` tells which half of the classes is rarer, if anything does; `within` is how much each
    sample counts among those of its class, all the same by default.
    """
    check_choice(criterion, Criterion, "criterion")
    samples = Weighted.under(target, validation.logits, validation.labels, within).that_count()
    best = _FITS[criterion](path, samples, target)
    length, spread = path.length(samples.logits), WIDE_SPREAD
    if isinstance(path, Shift):
        length, spread = length / _size(samples.logits), SPREAD
    error = max(best.spread, least_error(samples.worth, path.reach(samples.logits)))
    tau, trust = held_near_one(best.optimum, error, length, spread)
    tail = None if training is None else _effective_tail(samples, training)
    effective = effective_samples(samples.weights)
    return TauChoice(
        tau, criterion, *best.at(tau), best.optimum, trust, *best.within(error), effective, tail
    )


def least_error(samples: float, reach: float) -> float:
    """What the standard error of τ is at least, also where a handful of samples all agree.

    The information of one sample on τ is the variance of what a unit of τ adds to its logits, at
    most (reach/2)², where the model expects the class that is moved up most and the one that is
    moved down most, half each: so n samples do not know τ better than this (Cramér and Rao).

    >>> least_error(100, reach=4.0)
    0.05
    """
    return 2 / (samples**0.5 * reach) if reach > 0 else inf


def held_near_one(
    optimum: float, standard_error: float, length: float, spread: float = SPREAD
) -> tuple[float, float]:
    """The τ that follows from an optimum by (1), and the trust.

    >>> held_near_one(1.4, 0.1, length=2.0), held_near_one(-22.0, 8.0, length=0.05)
    ((1.384, 0.959), (0.912, 0.00383))
    """
    if not length > _NO_MOVE:
        return 1.0, 0.0  # no τ differs from another
    unknown = (standard_error / spread) ** 2 + (_MISFIT / length / SPREAD) ** 2
    trust = 1 / (1 + unknown)
    return 1 + trust * (optimum - 1), trust


def _size(logits: Numbers) -> float:
    """How far logits lie apart, 1 at the most: what no model's logits are right to is a part of it.

    A temperature of a hundred leaves logits, and τ, of a hundredth of the usual size.
    """
    finite = logits[np.isfinite(logits).all(axis=1)]
    size = float(finite.std(axis=1).mean()) if len(finite) else 1.0
    return min(1.0, size) or 1.0


def _effective_tail(samples: Weighted, training: Prior) -> float:
    rarer = np.argsort(training.log, kind="stable")[: (training.num_classes + 1) // 2]
    weights = samples.weights[np.isin(samples.labels, rarer)]
    return effective_samples(weights) if len(weights) else 0.0


class _Best(NamedTuple):
    """The best τ, its standard error and interval, and the criterion at any τ with its own."""

    optimum: float
    spread: float
    at: Callable[[float], tuple[float, float]]
    low: float | None = None
    high: float | None = None

    def within(self, error: float) -> tuple[float | None, float | None]:
        """The interval, made as wide as the error that decides."""
        if self.low is None or self.high is None or isinf(error):
            return None, None
        half = NORMAL * error
        return min(self.low, self.optimum - half), max(self.high, self.optimum + half)


def _by_accuracy(path: TauPath, samples: Weighted, target: Prior) -> _Best:
    curve = curve_along(path, samples, target)
    drawn = curve.bootstrap()

    def at(tau: float) -> tuple[float, float]:
        right = (predict(path, samples.logits, tau) == samples.labels).astype(float)
        return samples.mean(right), samples.standard_error(right)

    start, stop = curve.best_interval
    # It may lie anywhere in its piece alike; one end alone tells no width.
    inside = 0.0 if isinf(start) != isinf(stop) else (stop - start) / 12**0.5
    return _Best(curve.best_tau, hypot(drawn.spread, inside), at, *drawn.interval())


def _by_nll(path: TauPath, samples: Weighted, target: Prior) -> _Best:
    own = samples.logits[np.arange(len(samples.labels)), samples.labels]
    if np.isneginf(own).any():
        label = samples.labels[np.isneginf(own).argmax()]
        raise ValueError(
            f"the logits rule out the true class {label} of a sample, whose "
            "log-loss is infinite whatever tau; give probabilities to Scores.from_probs, which "
            "floors zeros, or choose by another criterion"
        )
    convex = isinstance(path, Shift)
    return _by_score(path, samples, criteria.NLL, [1.0] if convex else _starts(path, samples))


def _by_brier(path: TauPath, samples: Weighted, target: Prior) -> _Best:
    return _by_score(path, samples, criteria.BRIER, _starts(path, samples))


def _starts(path: TauPath, samples: Weighted) -> list[float]:
    """Where a score that is not convex is looked at first."""
    return criteria.places_of_change(path.intervals(samples.logits, samples.labels), _COARSE)


def _by_score(
    path: TauPath, samples: Weighted, proper: criteria.Proper, starts: list[float]
) -> _Best:
    def at(tau: float) -> tuple[float, float]:
        values = criteria.scores_at(tau, samples, path, proper).value
        return samples.mean(values), samples.standard_error(values)

    tau = criteria.lowest(samples, path, proper, starts)
    scores = criteria.scores_at(tau, samples, path, proper)
    bend = samples.mean(scores.bend)
    if not bend > 0:
        return _Best(tau, inf, at)
    # The minimum moves by the slope over the bend (the delta method).
    half = NORMAL * samples.standard_error(scores.slope) / bend
    # Where the score falls for ever both vanish, and the bend alone tells that nothing is known.
    spread = max(half / NORMAL, (samples.worth * bend) ** -0.5)
    return _Best(tau, spread, at, tau - half, tau + half)


def _by_ece(path: TauPath, samples: Weighted, target: Prior) -> _Best:
    right = path.intervals(samples.logits, samples.labels)
    best = criteria.lowest_ece(samples, path, right)
    return _Best(*best, lambda tau: criteria.ece_at(tau, samples, path, right))


_FITS: dict[str, Callable[[TauPath, Weighted, Prior], _Best]] = {
    "accuracy_under_target": _by_accuracy,
    "nll": _by_nll,
    "brier": _by_brier,
    "ece": _by_ece,
}
