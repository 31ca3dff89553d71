r"""Nearest neighbours in feature space, and log-probabilities smoothed over them.

Samples that look alike are mostly of one class, so what a model says of a sample's neighbours is
evidence on it too: a share α of their mean log-probabilities is added to its own,

    l_i + α Σ_j w_ij l_j,        w_ij ∝ exp(10 · cosine(x_i, x_j)) over the k nearest of i.

It takes no labels. Of many samples neighbours are looked for within parts of them. A class that a
neighbour rules out is unlikely, but not ruled out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import slices
from longtail.core.softmax import log_softmax

_SHARPNESS = 10.0  # of the weights
_TIES = np.float32(1e-6)  # of cosines: equal ones would take a selection many times as long
_FLOOR = -100.0  # log-probabilities of neighbours
_MOST = 20_000  # rows that neighbours are looked for in at once


class Neighbours(NamedTuple):
    """The nearest others of each sample, in no order; weights of a sample sum to one."""

    at: Indices  # of shape (N, k)
    weights: Floats

    def smoothed(self, logits: Numbers, share: float = 0.3) -> Floats:
        """Log-probabilities, up to a constant a row, with a share of those of the neighbours."""
        own = log_softmax(logits.astype(np.float64))
        return own + share * self.mean(np.maximum(own, _FLOOR)) if share else own

    def mean(self, rows: Floats) -> Floats:
        """The weighted mean of the neighbours' rows, for each sample."""
        total: Floats = np.zeros_like(rows)
        for at, weights in zip(self.at.T, self.weights.T, strict=True):
            total += weights[:, None] * rows[at]
        return total


def nearest(features: Numbers, count: int = 10, times: Floats | None = None) -> Neighbours:
    """The nearest neighbours of each row by cosine; fewer of few rows, and of one row none.

    A row that is there several `times` counts as often.

    >>> nearest(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.8]]), count=1).at.tolist()
    [[1], [0], [3], [2]]
    """
    tiny = np.finfo(np.float64).tiny
    largest = np.abs(features).max(axis=1, keepdims=True, initial=0.0).astype(np.float64)
    scaled = features / np.maximum(largest, tiny)
    lengths = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    unit = (scaled / np.maximum(lengths, tiny)).astype(np.float32)
    parts = -(-len(unit) // _MOST) or 1
    kept = min(count, len(unit) // parts - 1)
    at = np.zeros((len(unit), max(kept, 0)), np.int64)
    cosines = np.zeros(at.shape)
    for first in range(parts if at.size else 0):
        rows = unit[first::parts]  # samples often come by class
        apart = _TIES * np.random.default_rng(0).random(len(rows), np.float32)
        whose = np.arange(first, len(unit), parts)
        for block in slices(len(rows), len(rows)):
            alike = rows[block] @ rows.T
            own = np.arange(len(alike))
            alike[own, own + block.start] = -np.inf  # itself
            best = np.argpartition(apart - alike, kept - 1, axis=1)[:, :kept]
            at[whose[block]] = whose[best]
            cosines[whose[block]] = alike[own[:, None], best]
    weights = np.exp(_SHARPNESS * (cosines - 1)) * (1.0 if times is None else times[at])
    return Neighbours(at, weights / weights.sum(axis=1, keepdims=True) if at.size else weights)
