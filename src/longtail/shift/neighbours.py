r"""Samples that look alike are likely of one class: log-likelihoods smoothed over neighbours.

    l_i(y) + weight · Σ_j w_ij l_j(y),        w_ij ∝ exp(10·cosine of the features), Σ_j w_ij = 1

over the ten nearest other samples j. A sample that the model is unsure about takes after those
around it. How much is chosen on simulated shifts by the log-loss, and may be nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import slices
from longtail.core.draws import Draws
from longtail.core.softmax import log_softmax
from longtail.posthoc.validation import Validation
from longtail.shift.simulated import STRENGTHS, Simulated

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_NEIGHBOURS = 10
_SHARPNESS = 10.0  # of the weights in the cosine
_AT_ONCE = 20_000  # samples among which neighbours are sought
_FLOOR = -100.0  # of log-likelihoods below the row's largest: one that is ruled out rules all out


class _Nearest(NamedTuple):
    """The neighbours of each sample."""

    rows: Indices  # of shape (N, k)
    weights: Floats  # each row sums to one


def smoothed(logits: Numbers, features: Numbers, weight: float, random: Draws) -> Floats:
    """The logits of shape (N, C) with that weight of their neighbours' added."""
    rows = logits.astype(np.float64)
    if weight == 0 or len(rows) < 2:
        return rows
    order = random.permutation(len(rows))
    for part in np.array_split(order, -(-len(order) // _AT_ONCE)):
        rows[part] += weight * _around(rows[part], _nearest(features[part], np.ones(len(part))))
    return rows


def best_weight(validation: Validation, features: Numbers, shifts: Simulated) -> float:
    """Of the neighbours, by the log-loss on simulated shifts under their true prior."""
    losses = np.zeros(len(WEIGHTS))
    step = len(shifts.truths.T) // len(STRENGTHS)  # one of each strength is enough
    for times, truth in zip(shifts.times.T[::step], shifts.truths.T[::step], strict=True):
        there = shifts.rows[times > 0]
        rows, counted = validation.logits[there].astype(np.float64), times[times > 0]
        around = _around(rows, _nearest(features[there], counted))
        own = np.arange(len(rows)), validation.labels[there]
        with np.errstate(divide="ignore"):
            move = np.log(truth)
        for k, weight in enumerate(WEIGHTS):
            losses[k] -= counted @ log_softmax(rows + weight * around + move)[own]
    return WEIGHTS[int(losses.argmin())]


def _nearest(features: Numbers, times: Floats) -> _Nearest:
    """By the cosine; a sample that is there several times counts as often."""
    unit = features.astype(np.float32)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-30)
    number = min(_NEIGHBOURS, len(unit) - 1)
    nearest, cosines = np.empty((len(unit), number), np.int64), np.empty((len(unit), number))
    for part in slices(len(unit), len(unit)):
        alike = unit[part] @ unit.T
        here = np.arange(part.start, part.stop)
        alike[here - part.start, here] = -np.inf
        nearest[part] = np.argpartition(-alike, number - 1, axis=1)[:, :number]
        cosines[part] = np.take_along_axis(alike, nearest[part], axis=1)
    weights = times[nearest] * np.exp(_SHARPNESS * (cosines - 1))
    return _Nearest(nearest, weights / weights.sum(axis=1, keepdims=True))


def _around(rows: Floats, nearest: _Nearest) -> Floats:
    """Σ_j w_ij l_j of every sample."""
    level = np.maximum(rows - rows.max(axis=1, keepdims=True), _FLOOR)
    total: Floats = np.zeros_like(level)
    for at, weight in zip(nearest.rows.T, nearest.weights.T, strict=True):
        total += weight[:, None] * level[at]
    return total
