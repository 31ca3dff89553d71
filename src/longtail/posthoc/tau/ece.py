r"""Calibration error as a function of τ: piecewise, with a jump wherever a sample changes its bin.

It has no derivative to follow, and a confidence crosses the edge of a bin at a τ that only a search
would find. It is no proper score either: it may be low far from any sensible τ. So it is looked at
on 0 ≤ τ ≤ 2 in steps of 0.05, then in steps of 0.005 around the best of these, and what is found is
the best of these sixty, no more. Its standard error is that of the best of the coarse ones.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longtail.core.tensors import wide_dtype
from longtail.metrics.terms import BINS, inner_edges
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import TauPath
from longtail.posthoc.tau.weighted import Weighted
from longtail.stats import Replicates, alike

_COARSE = [k / 20 for k in range(41)]
_AROUND = [k / 200 for k in range(-9, 10)]
_EDGES = torch.from_numpy(inner_edges())
_BLOCK = 2**16  # entries of a block, which stays in the cache for all τ
_DRAWS = 200
_DRAWS_OF_THE_GRID = 30  # each of which is looked at for every coarse τ


class _Gaps(NamedTuple):
    """At one τ: how far each sample's confidence lies from what became of it, and its bin."""

    weighted: Tensor
    bins: Tensor

    def error(self, times: Tensor | None = None) -> float:
        """The calibration error, of samples that were drawn so many times."""
        gaps = self.weighted if times is None else self.weighted * times
        return float(torch.bincount(self.bins, gaps, minlength=BINS).abs().sum())


def lowest_ece(samples: Weighted, path: TauPath, right: Intervals) -> tuple[float, float]:
    """The best τ found, and its standard error if samples were drawn again."""
    dtype = wide_dtype(samples.logits.dtype)
    grid = _gaps(samples, path, right, _COARSE, dtype)
    coarse = _lowest(_COARSE, grid)
    close = [coarse + step for step in _AROUND if 0 <= coarse + step <= 2]
    tau = _lowest(close, _gaps(samples, path, right, close, dtype))
    again = [_lowest(_COARSE, grid, times) for times in _single_draws(samples, grid)]
    return tau, float(np.std(again))


def ece_at(tau: float, samples: Weighted, path: TauPath, right: Intervals) -> tuple[float, float]:
    """The calibration error at τ, and its standard error."""
    (gaps,) = _gaps(samples, path, right, [tau], torch.float64)
    return gaps.error(), float(np.std([gaps.error(times) for times in _draws(samples, _DRAWS)]))


def _lowest(taus: list[float], grid: list[_Gaps], times: Tensor | None = None) -> float:
    """The τ of the lowest error; of equals the nearest to 1."""
    pairs = zip(taus, grid, strict=True)
    return min((gaps.error(times), abs(tau - 1), tau) for tau, gaps in pairs)[2]


def _draws(samples: Weighted, draws: int) -> Iterator[Tensor]:
    drawn = Replicates(samples.labels.numpy(), seed=0)
    return (torch.from_numpy(drawn.draw()) for _ in range(draws))


def _single_draws(samples: Weighted, grid: list[_Gaps]) -> Iterator[Tensor]:
    """Samples drawn each on its own, as for the best τ of other criteria (`bootstrap`).

    Those of one label that are as far off at three τ are one sample that counts several times.
    """
    gaps = [(grid[k].weighted / samples.weights).numpy() for k in (0, len(grid) // 2, -1)]
    which = alike(samples.labels.numpy(), *gaps)
    random, times = np.random.default_rng(0), np.bincount(which, samples.times.numpy())
    return (
        torch.from_numpy((random.poisson(times) / times)[which]) for _ in range(_DRAWS_OF_THE_GRID)
    )


def _gaps(
    samples: Weighted, path: TauPath, right: Intervals, taus: list[float], dtype: torch.dtype
) -> list[_Gaps]:
    confidences = _confidences(samples, path, taus, dtype)
    bins = torch.bucketize(confidences, _EDGES, out_int32=True)
    for tau, row in zip(taus, confidences, strict=True):
        row.neg_().add_(torch.from_numpy(right.contain(tau))).mul_(samples.weights)
    return [_Gaps(*pair) for pair in zip(confidences, bins, strict=True)]


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
