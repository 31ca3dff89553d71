r"""Held-out samples with what each counts where labels follow the target.

A sample of class y counts t(y)/n_y, or t(y)·v_i/Σv over its class if samples weigh v_i. Classes
without samples cannot count, and the others share what the target gives to them. A weight is a
number of repetitions; weights that sum to less than there are samples are taken for shares, and
scaled to one a sample. Then with n_y = Σv the variance of a mean, samples of each class drawn
apart, is that of `stats.class_variance`, Σ_y t(y)² v_y / n_y.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor
from longtail.stats import class_variances


class Weighted(NamedTuple):
    """Labelled logits with weights.

    Attributes:
        logits: Shape (N, C), in the dtype they came in.
        labels: Class indices, int64, on the CPU.
        shares: What each sample counts in its class, float64; those of a class sum to one.
        weights: What each sample counts under the target, float64, summing to one.
        times: As how many samples each counts, float64; one without weights of their own.
    """

    logits: Tensor
    labels: Tensor
    shares: Tensor
    weights: Tensor
    times: Tensor

    @classmethod
    def under(
        cls, target: Prior, logits: Tensor, labels: Tensor, within: ArrayLike | None = None
    ) -> Weighted:
        """The samples weighted to a target; `within` says what each counts in its class."""
        times = _times(labels, within)
        shares = times / torch.bincount(labels, times, logits.shape[1])[labels]
        shares = torch.where(times > 0, shares, 0.0)
        return cls(logits, labels, shares, weights_to(target, labels, shares), times)

    @property
    def num_classes(self) -> int:
        """How many classes the logits have."""
        return self.logits.shape[1]

    def that_count(self) -> Weighted:
        """Without the samples of weight zero."""
        if self.weights.all():
            return self
        at = self.weights.nonzero().flatten()
        return Weighted(*(part[at.to(part.device)] for part in self))

    def blocks(self, entries: int) -> Iterator[slice]:
        """Slices of the samples with about so many logits each."""
        most = max(1, entries // self.num_classes)
        return (slice(k, k + most) for k in range(0, len(self.labels), most))

    def mean(self, values: Tensor) -> float:
        """The weighted mean of these values, one a sample."""
        return float(self.weights @ values)

    def standard_error(self, values: Tensor) -> float:
        """Of the weighted mean of these values."""
        sums, squares = (
            torch.bincount(self.labels, self.times * terms, self.num_classes)
            for terms in (values, values.square())
        )
        counts = self.counts
        within = class_variances(sums.numpy(), squares.numpy(), counts.numpy())
        variances = torch.from_numpy(within) / counts
        seen = counts > 0
        return float((self._masses.square() * variances)[seen].sum().sqrt())

    @property
    def counts(self) -> Tensor:
        """As how many samples those of each class count."""
        return torch.bincount(self.labels, self.times, self.num_classes)

    @property
    def worth(self) -> float:
        """How many samples drawn alike from all classes tell as much as these (Kish)."""
        counts = self.counts
        return float(1 / (self._masses.square() / counts)[counts > 0].sum())

    @property
    def _masses(self) -> Tensor:
        return torch.bincount(self.labels, self.weights, self.num_classes)


def weights_to(target: Prior, labels: Tensor, shares: Tensor) -> Tensor:
    """The shares times what the target gives to each class, summing to one."""
    weights = as_tensor(target.probs)[labels] * shares
    if not weights.sum() > 0:
        raise ValueError(
            "no sample counts: the target prior gives all to classes that have no samples here; "
            "use another target, or samples of its classes"
        )
    return weights / weights.sum()


def _times(labels: Tensor, within: ArrayLike | None) -> Tensor:
    if within is None:
        return torch.ones(len(labels), dtype=torch.float64, device="cpu")
    given = as_tensor(within).detach().to("cpu", torch.float64)
    if given.shape != labels.shape or not (given.isfinite() & (given >= 0)).all():
        raise ValueError(
            f"weights must be finite numbers, none negative, one for each of {len(labels)} "
            f"samples, got an array of shape {tuple(given.shape)}: {given.flatten()[:10].tolist()}"
        )
    total, most = float(given.sum()), int((given > 0).sum())
    return given * (most / total) if 0 < total < most else given
