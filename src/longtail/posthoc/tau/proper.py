r"""Log-loss and squared error as functions of τ, with their derivatives, and where they are lowest.

With z the moved logits, z' their rates, p = softmax z and m = Σ_j p_j z'_j, a sample's

    log-loss   −log p_y                 slope   m − z'_y
    Brier      Σ_j p_j² − 2 p_y + 1     slope   2 Σ_j p_j² (z'_j − m) − 2 p_y (z'_y − m)

Along a shift the log-loss is convex in τ, and Newton's method from τ = 1 finds its minimum. The
others need not be: they are first looked at on a grid, at quantiles of the τ where predictions
change. Where a score falls for ever, as it does if all samples are of the class that τ favours
most, the search stops where less than 1e-12 can be gained.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Path
from longtail.posthoc.tau.weighted import Weighted

_BLOCK = 2**17  # entries of a block: a megabyte in float64
_LEAST_GAIN = 1e-12
_MOST_STEPS = 200


class Score(NamedTuple):
    """A score at one τ: of every sample, or their weighted sum."""

    value: Tensor
    slope: Tensor
    bend: Tensor


def nll_scores(moved: Tensor, labels: Tensor, rate: Tensor, change: Tensor) -> Score:
    """The log-loss of each row, and its first two derivatives by τ."""
    log_probs = torch.log_softmax(moved, dim=1)
    probs, label = log_probs.exp(), labels[:, None]
    rate, change = rate.expand_as(moved), change.expand_as(moved)
    mean = (probs * rate).sum(dim=1, keepdim=True)
    bend = (probs * ((rate - mean).square() + change)).sum(dim=1)
    return Score(
        -log_probs.gather(1, label).squeeze(1),
        (mean - rate.gather(1, label)).squeeze(1),
        bend - change.gather(1, label).squeeze(1),
    )


def brier_scores(moved: Tensor, labels: Tensor, rate: Tensor, change: Tensor) -> Score:
    """The squared error of each row, and its first two derivatives by τ."""
    probs, label = torch.softmax(moved, dim=1), labels[:, None]
    away = rate - (probs * rate).sum(dim=1, keepdim=True)
    spread = (probs * away.square()).sum(dim=1, keepdim=True)
    once = probs * away
    twice = probs * (away.square() - spread + change - (probs * change).sum(dim=1, keepdim=True))
    misses = probs.scatter_add(1, label, -torch.ones_like(probs[:, :1]))
    return Score(
        misses.square().sum(dim=1),
        2 * (misses * once).sum(dim=1),
        2 * (once.square() + misses * twice).sum(dim=1),
    )


Scoring: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Score]
Point: TypeAlias = tuple[float, float, float]  # value, slope and bend at one τ


def scores_at(tau: float, samples: Weighted, path: Path, scoring: Scoring) -> Score:
    """The score of every sample at τ."""
    most, move, parts = max(1, _BLOCK // samples.num_classes), path.mover(tau), []
    for start in range(0, len(samples.labels), most):
        at = slice(start, start + most)
        moved = move(samples.logits[at].to("cpu", torch.float64))
        parts.append(scoring(moved, samples.labels[at], *path.rates(moved)))
    return Score(*(torch.cat(part) for part in zip(*parts, strict=True)))


def lowest(samples: Weighted, path: Path, scoring: Scoring, starts: list[float]) -> float:
    """The τ of the lowest mean score between the neighbours of the best of these starts."""

    def mean(tau: float) -> Point:
        scores = scores_at(tau, samples, path, scoring)
        return samples.mean(scores.value), samples.mean(scores.slope), samples.mean(scores.bend)

    found = [mean(tau) for tau in starts]
    best = min(range(len(starts)), key=lambda k: (found[k][0], abs(starts[k] - 1)))
    low = starts[best - 1] if best else -np.inf
    high = starts[best + 1] if best + 1 < len(starts) else np.inf
    return _descend(mean, starts[best], found[best], low, high)


def places_of_change(right: Intervals, points: int) -> list[float]:
    """τ = 0 and 1, and so many quantiles of the τ at which a prediction starts or stops right."""
    ends = np.concatenate(right)
    ends = ends[np.isfinite(ends)]
    if len(ends):
        ends = np.quantile(ends, np.linspace(0.01, 0.99, points))
    return [float(tau) for tau in np.unique(np.append(ends, [0.0, 1.0]))]


def _descend(
    at: Callable[[float], Point], tau: float, here: Point, low: float, high: float
) -> float:
    """Newton's method between two bounds; a step that leaves them, or leads up, is halved."""
    for _ in range(_MOST_STEPS):
        value, slope, bend = here
        if slope == 0:
            return tau
        low, high = (low, tau) if slope > 0 else (tau, high)
        step = -slope / bend if bend > 0 else -np.sign(slope) * np.inf
        if abs(step * slope) < _LEAST_GAIN * max(1.0, abs(value)):
            return float(tau + step) if low < tau + step < high else tau
        reach = 4 * max(1.0, abs(tau))
        new = tau + float(np.clip(step, -reach, reach))
        if not low < new < high:
            new = low / 2 + high / 2
        if new in (low, high):
            return tau
        there = at(new)
        if there[0] <= value:
            tau, here = new, there
        elif new > tau:
            high = new
        else:
            low = new
    return tau
