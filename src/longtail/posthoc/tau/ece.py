r"""Calibration error as a function of τ: piecewise, with a jump wherever a sample changes its bin.

It has no derivative to follow, and a confidence crosses the edge of a bin at a τ that only a search
would find. It is no proper score either: it may be low far from any sensible τ. So it is looked at
on 0 ≤ τ ≤ 2 in steps of 0.05, then in steps of 0.005 around the best of these, and what is found is
the best of these sixty, no more.
"""

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import wide_dtype
from longtail.posthoc.tau.bootstrap import Replicates
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import TauPath
from longtail.posthoc.tau.weighted import Weighted

_COARSE = [k / 20 for k in range(41)]
_AROUND = [k / 200 for k in range(-9, 10)]
_BINS = 20  # as in metrics.ece
_EDGES = torch.arange(1, _BINS, dtype=torch.float64, device="cpu") / _BINS
_BLOCK = 2**16  # entries of a block, which stays in the cache for all τ
_REPLICATES = 200


def lowest_ece(samples: Weighted, path: TauPath, right: Intervals) -> tuple[float, float, float]:
    """The best τ found, the calibration error there, and its standard error."""
    coarse = _lowest(samples, path, right, _COARSE)
    close = [coarse + step for step in _AROUND if 0 <= coarse + step <= 2]
    tau = _lowest(samples, path, right, close)
    confidence = _confidences(samples, path, [tau], torch.float64)[0]
    gaps = samples.weights * (torch.from_numpy(right.contain(tau)).double() - confidence)
    drawn = Replicates(samples.labels.numpy(), seed=0)
    again = [_error(gaps * torch.from_numpy(drawn.draw()), confidence) for _ in range(_REPLICATES)]
    return tau, _error(gaps, confidence), float(np.std(again))


def _lowest(samples: Weighted, path: TauPath, right: Intervals, taus: list[float]) -> float:
    """The τ of the lowest error; of equals the nearest to 1."""
    confidences = _confidences(samples, path, taus, wide_dtype(samples.logits.dtype))
    errors = {
        tau: _error(samples.weights * (torch.from_numpy(right.contain(tau)).double() - p), p)
        for tau, p in zip(taus, confidences, strict=True)
    }
    return min(taus, key=lambda tau: (errors[tau], abs(tau - 1)))


def _confidences(samples: Weighted, path: TauPath, taus: list[float], dtype: torch.dtype) -> Tensor:
    """Of the most likely class of every sample, one row a τ, float64."""
    found = torch.empty((len(taus), len(samples.labels)), dtype=torch.float64, device="cpu")
    movers = [path.mover(tau) for tau in taus]
    for at in samples.blocks(_BLOCK):
        rows = samples.logits[at].to("cpu", dtype)
        for k, move in enumerate(movers):
            moved = move(rows)
            moved -= moved.amax(dim=1, keepdim=True)
            found[k, at] = 1 / moved.exp_().sum(dim=1).double()
    return found


def _error(weighted_gaps: Tensor, confidence: Tensor) -> float:
    bins = torch.bucketize(confidence, _EDGES)
    return float(torch.bincount(bins, weighted_gaps, minlength=_BINS).abs().sum())
