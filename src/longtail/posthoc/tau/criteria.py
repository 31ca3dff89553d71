r"""Log-loss, squared error and calibration error as functions of τ, and where they are lowest.

With z the moved logits, r and c their first two derivatives, p = softmax z, and means under p
written ⟨·⟩, a sample's log-loss has

    value −log p_y,    slope ⟨r⟩ − r_y,    bend ⟨r²⟩ − ⟨r⟩² + ⟨c⟩ − c_y,

and its squared error Σ_j e_j² with e = p − 1[y] has

    slope 2 Σ_j e_j p'_j,    bend 2 Σ_j p'_j² + e_j p''_j,
    p' = p·(r − ⟨r⟩),    p'' = p·((r − ⟨r⟩)² − ⟨(r − ⟨r⟩)²⟩ + c − ⟨c⟩).

Along a shift the log-loss is convex in τ, and Newton's method from τ = 1 finds its minimum. The
others need not be: they are first looked at on a grid, at quantiles of the τ where predictions
change. Where a score falls for ever, as it does if all samples are of the class that τ favours
most, the search stops where less than 1e-12 can be gained.

Calibration error jumps wherever a sample changes its bin: it has no derivative to follow, and a
confidence crosses the edge of a bin at a τ that only a search would find. It is no proper score
either: it may be low far from any sensible τ. So it is looked at on 0 ≤ τ ≤ 2 in steps of 0.05,
then in steps of 0.005 around the best of these, and the result is the best of these sixty, no more.
Its standard error is that of the best of the coarse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import IN_CACHE_BESIDES, slices
from longtail.core.softmax import log_softmax, logsumexp, softmax, widened
from longtail.metrics.terms import BINS, bin_of
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import TauPath, wide_dtype
from longtail.posthoc.validation import Weighted
from longtail.stats import Replicates, alike

_LEAST_GAIN = 1e-12
_MOST_STEPS = 200
_COARSE = [k / 20 for k in range(41)]
_AROUND = [k / 200 for k in range(-9, 10)]
_DRAWS = 200
_DRAWS_OF_THE_GRID = 30  # each of which is looked at for every coarse τ


class Score(NamedTuple):
    """The score of every sample, and its first two derivatives by τ."""

    value: Floats
    slope: Floats
    bend: Floats


class Proper(NamedTuple):
    """A proper score as a function of moved logits and labels."""

    values: Callable[[Numbers, Indices], Numbers]
    scores: Callable[[Floats, Indices, Floats, Floats], Score]


Point: TypeAlias = tuple[float, float, float]  # value, slope and bend of the weighted mean


def nll_values(moved: Numbers, labels: Indices) -> Numbers:
    """The log-loss of each row."""
    return logsumexp(moved) - _own(moved, labels)


def nll_scores(moved: Floats, labels: Indices, rate: Floats, change: Floats) -> Score:
    """The log-loss of each row with its derivatives, from those of the logits."""
    log_probs = log_softmax(moved)
    probs = np.exp(log_probs)
    mean = _sums(probs, rate)
    spread = _sums(probs, np.square(rate)) - np.square(mean)
    bend = spread + _sums(probs, change) - _own(change, labels)
    return Score(-_own(log_probs, labels), mean - _own(rate, labels), bend)


def brier_values(moved: Numbers, labels: Indices) -> Numbers:
    """The squared error of each row."""
    probs = softmax(moved)
    return np.asarray(np.square(probs).sum(axis=1) - 2 * _own(probs, labels) + 1)


def brier_scores(moved: Floats, labels: Indices, rate: Floats, change: Floats) -> Score:
    """The squared error of each row with its derivatives, from those of the logits."""
    probs = softmax(moved)
    own, mean, turn = _own(probs, labels), _sums(probs, rate), _sums(probs, change)
    spread = _sums(probs, np.square(rate)) - np.square(mean)
    away = _own(rate, labels) - mean
    squares = np.square(probs, out=probs)
    total, first = squares.sum(axis=1), _sums(squares, rate)
    second = _sums(squares, np.square(rate)) - 2 * mean * first + np.square(mean) * total
    all_bend = 2 * second - spread * total + _sums(squares, change) - turn * total
    own_bend = own * (np.square(away) - spread + _own(change, labels) - turn)
    slope = first - mean * total - own * away
    return Score(total - 2 * own + 1, 2 * slope, 2 * (all_bend - own_bend))


NLL, BRIER = Proper(nll_values, nll_scores), Proper(brier_values, brier_scores)


def scores_at(tau: float, samples: Weighted, path: TauPath, proper: Proper) -> Score:
    """The score of every sample at τ, with its derivatives."""
    every, move = np.empty((3, len(samples.labels))), path.mover(tau)
    for at in slices(len(samples.labels), samples.num_classes, IN_CACHE_BESIDES):
        moved = move(samples.logits[at].astype(np.float64), None)
        every[:, at] = proper.scores(moved, samples.labels[at], *path.rates(moved))
    return Score(*every)


def lowest(samples: Weighted, path: TauPath, proper: Proper, starts: list[float]) -> float:
    """The τ of the lowest mean score between the neighbours of the best of these starts."""

    def mean(tau: float) -> Point:
        scores = scores_at(tau, samples, path, proper)
        return samples.mean(scores.value), samples.mean(scores.slope), samples.mean(scores.bend)

    values = _means_at(starts, samples, path, proper)
    best = min(range(len(starts)), key=lambda k: (values[k], abs(starts[k] - 1)))
    low = starts[best - 1] if best else -np.inf
    high = starts[best + 1] if best + 1 < len(starts) else np.inf
    return descend(mean, starts[best], low, high)


def places_of_change(right: Intervals, points: int) -> list[float]:
    """τ = 0 and 1, and so many quantiles of the τ at which a prediction starts or stops right."""
    ends = np.concatenate(right)
    ends = ends[np.isfinite(ends)]
    if len(ends):
        ends = np.quantile(ends, np.linspace(0.01, 0.99, points))
    return [float(tau) for tau in np.unique(np.append(ends, [0.0, 1.0]))]


def descend(
    at: Callable[[float], Point],
    start: float,
    low: float = -np.inf,
    high: float = np.inf,
    most_steps: int = _MOST_STEPS,
) -> float:
    """Newton's method between two bounds; a step that leaves them, or leads up, is halved."""
    x, here = start, at(start)
    for _ in range(most_steps):
        value, slope, bend = here
        low, high = (low, x) if slope > 0 else (x, high)
        reach = 4 * max(1.0, abs(x))
        step = -slope / bend if bend * reach > abs(slope) else -np.copysign(reach, slope)
        new = x + float(step)
        if abs(step * slope) < _LEAST_GAIN * max(1.0, abs(value)):
            return new if abs(step) < reach and low < new < high else x
        if not low < new < high:
            new = low / 2 + high / 2
        if new in (low, high):
            return x
        there = at(new)
        if there[0] <= value:
            x, here = new, there
        elif new > x:
            high = new
        else:
            low = new
    return x


def lowest_ece(samples: Weighted, path: TauPath, right: Intervals) -> tuple[float, float]:
    """The τ of the lowest calibration error, and its standard error if samples were drawn again."""
    dtype = wide_dtype(samples.logits)
    grid = _gaps(samples, path, right, _COARSE, dtype)
    coarse = _lowest(_COARSE, grid)
    close = [coarse + step for step in _AROUND if 0 <= coarse + step <= 2]
    tau = _lowest(close, _gaps(samples, path, right, close, dtype))
    again = [_lowest(_COARSE, grid, times) for times in _single_draws(samples, grid)]
    return tau, float(np.std(again))


def ece_at(tau: float, samples: Weighted, path: TauPath, right: Intervals) -> tuple[float, float]:
    """The calibration error at τ, and its standard error."""
    (gaps,) = _gaps(samples, path, right, [tau], np.dtype(np.float64))
    draws = Replicates(samples.labels, seed=0)
    return gaps.error(), float(np.std([gaps.error(draws.draw()) for _ in range(_DRAWS)]))


class _Gaps(NamedTuple):
    """At one τ: how far each sample's confidence lies from what became of it, and its bin."""

    weighted: Floats
    bins: Indices

    def error(self, times: Floats | float = 1.0) -> float:
        """The calibration error, of samples that were drawn so many times."""
        return float(np.abs(np.bincount(self.bins, self.weighted * times, BINS)).sum())


def _lowest(taus: list[float], grid: list[_Gaps], times: Floats | float = 1.0) -> float:
    """The τ of the lowest error; of equals the nearest to 1."""
    pairs = zip(taus, grid, strict=True)
    return min((gaps.error(times), abs(tau - 1), tau) for tau, gaps in pairs)[2]


def _single_draws(samples: Weighted, grid: list[_Gaps]) -> Iterator[Floats]:
    """Samples drawn each on its own, as for the best τ of other criteria (`curve`).

    Those of one label that are as far off at three τ are one sample that counts several times.
    """
    gaps = [grid[k].weighted / samples.weights for k in (0, len(grid) // 2, -1)]
    which = alike(samples.labels, *gaps)
    random, times = np.random.default_rng(0), np.bincount(which, samples.times)
    return ((random.poisson(times) / times)[which] for _ in range(_DRAWS_OF_THE_GRID))


def _gaps(
    samples: Weighted, path: TauPath, right: Intervals, taus: list[float], dtype: np.dtype[Any]
) -> list[_Gaps]:
    confidences = np.empty((len(taus), len(samples.labels)))  # of the most likely class
    movers = [path.mover(tau) for tau in taus]
    for at in slices(len(samples.labels), samples.num_classes, IN_CACHE_BESIDES):
        rows = samples.logits[at].astype(dtype, copy=False)
        for k, move in enumerate(movers):
            moved = move(rows, None)
            moved -= moved.max(axis=1, keepdims=True)
            confidences[k, at] = 1 / np.exp(moved, out=moved).sum(axis=1).astype(np.float64)
    return [
        _Gaps((right.contain(tau) - sure) * samples.weights, bin_of(sure))
        for tau, sure in zip(taus, confidences, strict=True)
    ]


def _means_at(taus: list[float], samples: Weighted, path: TauPath, proper: Proper) -> list[float]:
    """The mean score at some τ; infinite where the logits overflow."""
    if len(taus) == 1:
        return [0.0]
    movers, means = [path.mover(tau) for tau in taus], np.zeros(len(taus))
    for at in slices(len(samples.labels), samples.num_classes, IN_CACHE_BESIDES):
        rows = widened(samples.logits[at])
        with np.errstate(over="ignore", invalid="ignore"):
            for k, move in enumerate(movers):
                values = proper.values(move(rows, None), samples.labels[at])
                means[k] += samples.weights[at] @ values
    return [np.inf if np.isnan(mean) else float(mean) for mean in means]


def _sums(probs: Floats, per_class: Floats) -> Floats:
    """Σ_j p_j x_j of each row, where x is the same for all rows or has rows of its own."""
    if per_class.ndim == 1:
        return probs @ per_class
    return np.asarray(np.einsum("ij,ij->i", probs, per_class))


def _own(per_class: Numbers, labels: Indices) -> Numbers:
    """The entry of each row's label."""
    return per_class[labels] if per_class.ndim == 1 else per_class[np.arange(len(labels)), labels]
