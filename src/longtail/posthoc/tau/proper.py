r"""Log-loss and squared error as functions of τ, with their derivatives, and where they are lowest.

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
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from longtail.core.tensors import wide_dtype
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import TauPath
from longtail.posthoc.tau.weighted import Weighted

_BLOCK = 2**16  # entries of a block: half a megabyte in float64
_LEAST_GAIN = 1e-12
_MOST_STEPS = 200


class Score(NamedTuple):
    """The score of every sample, and its first two derivatives by τ."""

    value: Tensor
    slope: Tensor
    bend: Tensor


class Proper(NamedTuple):
    """A proper score as a function of moved logits and labels."""

    values: Callable[[Tensor, Tensor], Tensor]
    scores: Callable[[Tensor, Tensor, Tensor, Tensor], Score]


Point: TypeAlias = tuple[float, float, float]  # value, slope and bend of the weighted mean


def nll_values(moved: Tensor, labels: Tensor) -> Tensor:
    """The log-loss of each row."""
    return torch.logsumexp(moved, dim=1) - _own(moved, labels)


def nll_scores(moved: Tensor, labels: Tensor, rate: Tensor, change: Tensor) -> Score:
    """The log-loss of each row with its derivatives, from those of the logits."""
    log_probs = torch.log_softmax(moved, dim=1)
    probs = log_probs.exp()
    mean = _sums(probs, rate)
    spread = _sums(probs, rate.square()) - mean.square()
    bend = spread + _sums(probs, change) - _own(change, labels)
    return Score(-_own(log_probs, labels), mean - _own(rate, labels), bend)


def brier_values(moved: Tensor, labels: Tensor) -> Tensor:
    """The squared error of each row."""
    probs = torch.softmax(moved, dim=1)
    own = _own(probs, labels)
    return probs.square_().sum(dim=1) - 2 * own + 1


def brier_scores(moved: Tensor, labels: Tensor, rate: Tensor, change: Tensor) -> Score:
    """The squared error of each row with its derivatives, from those of the logits."""
    probs = torch.softmax(moved, dim=1)
    own, mean, turn = _own(probs, labels), _sums(probs, rate), _sums(probs, change)
    spread = _sums(probs, rate.square()) - mean.square()
    away = _own(rate, labels) - mean
    squares = probs.square_()
    total, first = squares.sum(dim=1), _sums(squares, rate)
    second = _sums(squares, rate.square()) - 2 * mean * first + mean.square() * total
    all_bend = 2 * second - spread * total + _sums(squares, change) - turn * total
    own_bend = own * (away.square() - spread + _own(change, labels) - turn)
    slope = first - mean * total - own * away
    return Score(total - 2 * own + 1, 2 * slope, 2 * (all_bend - own_bend))


NLL, BRIER = Proper(nll_values, nll_scores), Proper(brier_values, brier_scores)


def scores_at(tau: float, samples: Weighted, path: TauPath, proper: Proper) -> Score:
    """The score of every sample at τ, with its derivatives."""
    found = torch.empty((3, len(samples.labels)), dtype=torch.float64, device="cpu")
    move = path.mover(tau)
    for at in samples.blocks(_BLOCK):
        moved = move(samples.logits[at].to("cpu", torch.float64))
        found[:, at] = torch.stack(proper.scores(moved, samples.labels[at], *path.rates(moved)))
    return Score(*found)


def lowest(samples: Weighted, path: TauPath, proper: Proper, starts: list[float]) -> float:
    """The τ of the lowest mean score between the neighbours of the best of these starts."""

    def mean(tau: float) -> Point:
        scores = scores_at(tau, samples, path, proper)
        return samples.mean(scores.value), samples.mean(scores.slope), samples.mean(scores.bend)

    values = _means_at(starts, samples, path, proper)
    best = min(range(len(starts)), key=lambda k: (values[k], abs(starts[k] - 1)))
    low = starts[best - 1] if best else -np.inf
    high = starts[best + 1] if best + 1 < len(starts) else np.inf
    return _descend(mean, starts[best], low, high)


def places_of_change(right: Intervals, points: int) -> list[float]:
    """τ = 0 and 1, and so many quantiles of the τ at which a prediction starts or stops right."""
    ends = np.concatenate(right)
    ends = ends[np.isfinite(ends)]
    if len(ends):
        ends = np.quantile(ends, np.linspace(0.01, 0.99, points))
    return [float(tau) for tau in np.unique(np.append(ends, [0.0, 1.0]))]


def _means_at(taus: list[float], samples: Weighted, path: TauPath, proper: Proper) -> list[float]:
    """The mean score at some τ; infinite where the logits overflow."""
    if len(taus) == 1:
        return [0.0]
    movers = [path.mover(tau) for tau in taus]
    means = torch.zeros(len(taus), dtype=torch.float64, device="cpu")
    for at in samples.blocks(_BLOCK):
        rows = samples.logits[at]
        rows = rows.to("cpu", wide_dtype(rows.dtype))
        for k, move in enumerate(movers):
            values = proper.values(move(rows), samples.labels[at])
            means[k] += samples.weights[at] @ values.double()
    return means.nan_to_num(nan=np.inf).tolist()


def _descend(at: Callable[[float], Point], tau: float, low: float, high: float) -> float:
    """Newton's method between two bounds; a step that leaves them, or leads up, is halved."""
    here = at(tau)
    for _ in range(_MOST_STEPS):
        value, slope, bend = here
        low, high = (low, tau) if slope > 0 else (tau, high)
        reach = 4 * max(1.0, abs(tau))
        step = -slope / bend if bend * reach > abs(slope) else -np.copysign(reach, slope)
        new = tau + float(step)
        if abs(step * slope) < _LEAST_GAIN * max(1.0, abs(value)):
            return new if abs(step) < reach and low < new < high else tau
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


def _sums(probs: Tensor, per_class: Tensor) -> Tensor:
    """Σ_j p_j x_j of each row, where x is the same for all rows or has rows of its own."""
    return probs @ per_class if per_class.dim() == 1 else (probs * per_class).sum(dim=1)


def _own(per_class: Tensor, labels: Tensor) -> Tensor:
    """The entry of each row's label."""
    if per_class.dim() == 1:
        return per_class[labels]
    return per_class.gather(1, labels[:, None]).squeeze(1)
