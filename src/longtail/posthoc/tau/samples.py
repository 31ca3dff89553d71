r"""Held-out samples with what each counts where labels follow the target.

A sample of class y counts t(y)/n_y, or t(y)·v_i/Σv over its class if samples weigh v_i. Classes
without samples cannot count, and the others share what the target gives to them. A weight is a
number of repetitions; weights that sum to less than there are samples are taken for shares, and
scaled to one a sample. Then with n_y = Σv the variance of a mean, samples of each class drawn
apart, is Σ_y t(y)² v_y / n_y with the v_y of `stats.class_variances`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.posthoc.tau.stand_in import class_variances
from longtail.posthoc.validation import Floats, Indices, Rows, check_weights, weights_to


class Weighted(NamedTuple):
    """Labelled logits with weights.

    Attributes:
        logits: Shape (N, C), in the dtype they came in.
        labels: Class indices.
        shares: What each sample counts in its class; those of a class sum to one.
        weights: What each sample counts under the target, summing to one.
        times: As how many samples each counts; one without weights of their own.
    """

    logits: Rows
    labels: Indices
    shares: Floats
    weights: Floats
    times: Floats

    @classmethod
    def under(
        cls, target: Prior, logits: Rows, labels: Indices, within: ArrayLike | None = None
    ) -> Weighted:
        """The samples weighted to a target; `within` says what each counts in its class."""
        times = np.ones(len(labels)) if within is None else _repetitions(within, len(labels))
        totals = np.bincount(labels, times, logits.shape[1])[labels]
        shares = np.divide(times, totals, out=np.zeros_like(times), where=times > 0)
        return cls(logits, labels, shares, weights_to(target, labels, shares), times)

    @property
    def num_classes(self) -> int:
        """How many classes the logits have."""
        return int(self.logits.shape[1])

    def that_count(self) -> Weighted:
        """Without the samples of weight zero."""
        if self.weights.all():
            return self
        at = np.flatnonzero(self.weights)
        return Weighted(
            self.logits[at], self.labels[at], self.shares[at], self.weights[at], self.times[at]
        )

    def mean(self, values: Rows) -> float:
        """The weighted mean of these values, one a sample."""
        return float(self.weights @ values)

    def standard_error(self, values: Rows) -> float:
        """Of the weighted mean of these values."""
        sums, squares = (self._sums(self.times * terms) for terms in (values, np.square(values)))
        counts = self._sums(self.times)
        seen = counts > 0
        variances = class_variances(sums, squares, counts)[seen] / counts[seen]
        return float(np.sqrt((np.square(self._sums(self.weights)[seen]) * variances).sum()))

    @property
    def worth(self) -> float:
        """How many samples drawn alike from all classes tell as much as these (Kish)."""
        counts = self._sums(self.times)
        seen = counts > 0
        return float(1 / (np.square(self._sums(self.weights)[seen]) / counts[seen]).sum())

    def _sums(self, terms: Floats) -> Floats:
        """Over the samples of each class."""
        return np.bincount(self.labels, terms, self.num_classes).astype(np.float64, copy=False)


def _repetitions(within: ArrayLike, num_samples: int) -> Floats:
    times = check_weights(within, num_samples)
    total, most = float(times.sum()), int((times > 0).sum())
    return times * (most / total) if 0 < total < most else times
