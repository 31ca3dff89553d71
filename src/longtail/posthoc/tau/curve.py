r"""Accuracy as a function of τ, for every τ at once, and how far it moves with other samples.

A sample is right on one interval of τ (`intervals`), so accuracy under the target t,

    A(τ) = Σ_y t(y) · recall_y(τ)  /  Σ_y t(y)              over the classes that have samples,

is a step function. A sample adds its weight from the piece on that opens where it starts to be
right, and takes it back where it stops: one pass over the logits, one sort of the ends and a
cumulative sum give all of it, and its true maximum. Balanced accuracy is the case of uniform t.

Ends are computed in float64. Logits of lower precision are adjusted in their own, where a sample
within a rounding of its end may fall to the other side. So the best τ is tried on the logits, and
of a few best pieces the first is taken that keeps what it promises.

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
from typing import NamedTuple, cast

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Array, ArrayLike, Floats, Indices, Numbers, as_numpy, to_kind
from longtail.core.numbers import check_per_class
from longtail.core.prior import check_same_classes, full_prior, target_prior
from longtail.core.retarget import prior_offset
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Scale, Shift, TauPath, predict
from longtail.posthoc.validation import Weighted, weights_to
from longtail.stats import Replicates, alike

_TRIES = 5  # so many pieces: in float32 one in ten or so does not keep its promise
_DIGITS = 12  # sums of the same weights in another order differ by less; a weight is larger


@dataclass(frozen=True, eq=False)
class TauBootstrap:
    """What samples drawn again say about a curve."""

    standard_error: Array  # of the accuracy under the target, on each piece of the curve
    best_taus: Array  # of every replicate

    @property
    def spread(self) -> float:
        """The standard deviation of the best τ over the replicates: its standard error."""
        return float(np.std(as_numpy(self.best_taus)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Between which two numbers the best τ of that share of the replicates lies."""
        if not 0 < level < 1:
            raise ValueError(f"level is the share of replicates inside, in 0 to 1, got {level}")
        low, high = np.quantile(as_numpy(self.best_taus), [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


@dataclass(frozen=True, eq=False, repr=False)
class TauCurve:
    """Accuracy for every τ, a step function.

    Value k of `accuracy` and of `balanced_accuracy` holds for taus[k-1] ≤ τ < taus[k], the first
    one from minus infinity and the last one to infinity, so there is one value more than ends. Ties
    are broken as argmax does, by the lowest index. An end that a tie keeps out of its interval is
    moved to the next float64 number, so `at` is right at the ends too.
    """

    taus: Array  # the ends of the pieces, ascending
    accuracy: Array  # under the target, on each piece
    balanced_accuracy: Array  # the mean recall, on each piece; the same if the target is uniform
    best_tau: float  # 1 if in `best_interval`, else its middle, or one inside if it has one end
    best_interval: tuple[float, float]  # where accuracy is highest; of equal ones, nearest to 1
    best_accuracy: float  # of these logits adjusted by `best_tau` in their own precision
    target: Prior  # under which accuracy is meant
    intervals: Intervals  # from which τ on and up to which each sample is right
    labels: Indices
    weights: Floats  # what each sample counts under the target
    times: Floats  # as how many samples each counts

    def at(self, tau: float) -> float:
        """Accuracy under the target at τ."""
        piece = np.searchsorted(as_numpy(self.taus), tau, side="right")
        return float(as_numpy(self.accuracy)[piece])

    def recalls(self, tau: float) -> Array:
        """The recall of every class at τ; NaN for a class without samples."""
        classes, right = self.target.num_classes, self.labels[self.intervals.contain(tau)]
        counts = np.bincount(self.labels, minlength=classes)
        hits = np.bincount(right, minlength=classes)
        recalls = np.divide(hits, counts, out=np.full(classes, np.nan), where=counts > 0)
        return cast(Array, to_kind(recalls, self.taus))

    def bootstrap(self, replicates: int = 200, seed: int = 0) -> TauBootstrap:
        """How far the curve and its best τ move if samples of each class are drawn again."""
        counted = self.labels, self.weights, self.times
        drawn = draw_curves(Steps.of(self.intervals), *counted, replicates, seed)
        return TauBootstrap(*(to_kind(values, self.taus) for values in drawn))

    def __repr__(self) -> str:
        low, high = self.best_interval
        best = f"best_tau={self.best_tau:.4g} in [{low:.4g}, {high:.4g})"
        size = f"{len(self.labels)} samples, {len(self.taus)} ends"
        return f"TauCurve({size}, {best}, accuracy {self.best_accuracy:.4g})"


def tau_curve(
    logits: Array, labels: ArrayLike, prior: PriorLike, target: PriorLike | None = None
) -> TauCurve:
    """Accuracy of f + τ·(log target − log prior) for every τ: the curve behind the choice of τ.

    The logits (N, C) carry `prior`, that of training. With the uniform target, the default, these
    are f − τ·log π (LA eq. 9), and accuracy is balanced accuracy.

    >>> logits = np.array([[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]])
    >>> curve = tau_curve(logits, [0, 0, 0, 1, 1], prior=[90, 10])
    >>> curve.best_tau, curve.best_accuracy, curve.at(0.0)
    (0.387, 0.833, 0.5)
    """
    rows, true = _check(logits, labels)
    source = full_prior(prior, "training")
    check_same_classes(rows.shape[1], source, "the logits have", "the training prior")
    goal = target_prior(target, rows.shape[1], "the logits have")
    path = Shift(prior_offset(source, goal))
    return curve_along(path, Weighted.under(goal, rows, true), goal, logits)


def weight_norm_curve(
    logits: Array, labels: ArrayLike, nu: ArrayLike, target: PriorLike | None = None
) -> TauCurve:
    """Accuracy of f/ν^τ for every τ, as `tau_curve`.

    ν is the norm of each class's weight, or the training prior. The target, uniform by default,
    changes what is counted, not what is predicted.
    """
    rows, true = _check(logits, labels)
    log_nu = np.log(check_per_class(nu, rows.shape[1], "nu"))
    goal = target_prior(target, rows.shape[1], "the logits have")
    return curve_along(Scale(log_nu), Weighted.under(goal, rows, true), goal, logits)


def curve_along(
    path: TauPath, samples: Weighted, target: Prior, example: object = None
) -> TauCurve:
    """The curve of samples weighted to the target, with arrays of the example's kind."""
    right = path.intervals(samples.logits, samples.labels)
    steps = Steps.of(right)
    accuracy = steps.values(samples.weights)
    uniform = weights_to(Prior.uniform(target.num_classes), samples.labels, samples.shares)
    tried = []
    for piece in best_pieces(steps.taus, accuracy, _TRIES):
        hits = predict(path, samples.logits, piece.inner) == samples.labels
        tried.append((samples.mean(hits), piece))
        if tried[-1][0] > piece.value - 1e-9:
            break
    best_accuracy, best = max(tried, key=lambda pair: pair[0])
    values = accuracy, steps.values(uniform)
    taus, under_target, balanced = (to_kind(array, example) for array in (steps.taus, *values))
    optimum = best.inner, (best.low, best.high), best_accuracy
    counted = samples.labels, samples.weights, samples.times
    return TauCurve(taus, under_target, balanced, *optimum, target, right, *counted)


def _check(logits: Array, labels: ArrayLike) -> tuple[Numbers, Indices]:
    """The samples, or a ValueError."""
    scores = Scores(logits, labels)
    if not len(scores):
        raise ValueError("a curve needs samples and their labels, got none")
    return as_numpy(scores.logits), as_numpy(scores.labels)


class Steps(NamedTuple):
    """Where the steps are, and which of them each sample makes."""

    taus: Floats  # the ends, ascending, none twice
    opens: Indices  # the first piece on which each sample is right; past the last if it never is
    closes: Indices  # the first piece after those

    @classmethod
    def of(cls, right: Intervals) -> Steps:
        """The steps of samples that are right on these intervals."""
        never = ~(right.start < right.stop)
        starts_and_stops = np.where(never, np.inf, right).ravel()
        ends, at = np.unique(starts_and_stops, return_inverse=True)
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
        """1 if it lies inside; else the middle, or of a piece with one end the point one inside."""
        low, high = self.low, self.high
        if low <= 1 < high:
            return 1.0
        point = low / 2 + high / 2
        if not np.isfinite(point):
            point = low + 1 if np.isfinite(low) else high - 1
        return float(max(low, min(point, np.nextafter(high, -np.inf))))


def best_pieces(taus: Floats, values: Floats, most: int) -> list[Piece]:
    """The pieces with the highest values, at most so many; neighbours of one value are one piece.

    Of equal ones the nearest to τ = 1 comes first, and last those of a single number, where a tie
    of two logits is right by its order alone.
    """
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    edges, ends = np.concatenate([[-np.inf], taus, [np.inf]]), np.append(first[1:], len(values))
    if len(first) > most:
        high_enough = values[first] >= np.partition(values[first], -most)[-most]
        first, ends = first[high_enough], ends[high_enough]
    low, high = edges[first], edges[ends]
    from_one = np.maximum(0, np.maximum(low - 1, 1 - high))
    single = high <= np.nextafter(low, np.inf)
    ranked = np.lexsort((from_one, single, -values[first]))[:most]
    return [Piece(float(low[k]), float(high[k]), float(values[first[k]])) for k in ranked]


class SingleDraws:
    """Draws of samples each on its own, whatever is drawn of its class (`stats.alike`)."""

    def __init__(self, steps: Steps, labels: Indices, weights: Floats, times: Floats) -> None:
        which = alike(labels, steps.opens, steps.closes)
        first = np.unique(which, return_index=True)[1]
        self._times, self._weights = np.bincount(which, times), np.bincount(which, weights)
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
