r"""Calibration error as a function of τ: piecewise, with a jump wherever a sample changes its bin.

It has no derivative to follow, and a confidence crosses the edges of bins at τ that only a search
would find. So it is looked at where predictions change (`places_of_change`), then closely around
the best of these: what is found is the best of some sixty τ, and no more is claimed.
"""

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import wide_dtype
from longtail.posthoc.tau.bootstrap import Replicates
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Path
from longtail.posthoc.tau.proper import places_of_change
from longtail.posthoc.tau.weighted import Weighted

_BINS = 20  # as in metrics.ece
_EDGES = torch.arange(1, _BINS, dtype=torch.float64, device="cpu") / _BINS
_BLOCK = 2**16  # entries of a block, which stays in the cache for all τ
_COARSE, _FINE, _REPLICATES = 39, 21, 200


def lowest_ece(samples: Weighted, path: Path, right: Intervals) -> tuple[float, float, float]:
    """The best τ found, the calibration error there, and its standard error."""
    coarse = places_of_change(right, _COARSE)
    best = _lowest(samples, path, right, coarse)
    low, high = coarse[max(0, best - 1)], coarse[min(best + 1, len(coarse) - 1)]
    fine = [coarse[best], *np.linspace(low, high, _FINE).tolist()]
    tau = fine[_lowest(samples, path, right, fine)]
    confidence = _confidences(samples, path, [tau], torch.float64)[0]
    gaps = torch.from_numpy(right.contain(tau)).double() - confidence
    return tau, *_error_and_its_own(samples, gaps, confidence)


def _lowest(samples: Weighted, path: Path, right: Intervals, taus: list[float]) -> int:
    """Which τ has the lowest error; of equals the nearest to 1."""
    confidences = _confidences(samples, path, taus, wide_dtype(samples.logits.dtype))
    errors = [
        _error(samples.weights * (torch.from_numpy(right.contain(tau)).double() - p), p)
        for tau, p in zip(taus, confidences, strict=True)
    ]
    return min(range(len(taus)), key=lambda k: (errors[k], abs(taus[k] - 1)))


def _confidences(samples: Weighted, path: Path, taus: list[float], dtype: torch.dtype) -> Tensor:
    """Of the most likely class of every sample, one row a τ, float64."""
    found = torch.empty((len(taus), len(samples.labels)), dtype=torch.float64, device="cpu")
    most = max(1, _BLOCK // samples.num_classes)
    movers = [path.mover(tau) for tau in taus]
    for start in range(0, len(samples.labels), most):
        rows = samples.logits[start : start + most].to("cpu", dtype)
        for move, into in zip(movers, found[:, start : start + most], strict=True):
            moved = move(rows)
            moved -= moved.amax(dim=1, keepdim=True)
            torch.reciprocal(moved.exp_().sum(dim=1).double(), out=into)
    return found


def _error(weighted_gaps: Tensor, confidence: Tensor) -> float:
    bins = torch.bucketize(confidence, _EDGES)
    return float(torch.bincount(bins, weighted_gaps, minlength=_BINS).abs().sum())


def _error_and_its_own(samples: Weighted, gaps: Tensor, confidence: Tensor) -> tuple[float, float]:
    """The calibration error, and how far it moves if samples of each class are drawn again."""
    weighted = samples.weights * gaps
    drawn = Replicates(samples.labels.numpy(), seed=0)
    again = [
        _error(weighted * torch.from_numpy(drawn.draw()), confidence) for _ in range(_REPLICATES)
    ]
    return _error(weighted, confidence), float(np.std(again))
