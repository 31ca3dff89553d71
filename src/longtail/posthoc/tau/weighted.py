r"""Held-out samples with what each counts where labels follow the target.

A sample of class y counts t(y)/n_y, or t(y)·v_i/Σv over its class if samples weigh v_i. Classes
without samples cannot count, and the others share what the target gives to them. Of a mean with
such weights w, samples of each class drawn apart, the variance is Σ_i w_i² (x_i − x̄_y)²; to each
class one sample of the variance of all classes is added, as in `metrics.class_variance`, since the
squares of a single sample about its own mean are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike, as_tensor


class Weighted(NamedTuple):
    """Labelled logits with weights.

    Attributes:
        logits: Shape (N, C), in the dtype they came in.
        labels: Class indices, int64, on the CPU.
        shares: What each sample counts in its class, float64; those of a class sum to one.
        weights: What each sample counts under the target, float64, summing to one.
    """

    logits: Tensor
    labels: Tensor
    shares: Tensor
    weights: Tensor

    @classmethod
    def under(
        cls, target: Prior, logits: Tensor, labels: Tensor, within: ArrayLike | None = None
    ) -> Weighted:
        """The samples weighted to a target; `within` says what each counts in its class."""
        shares = _shares(labels, logits.shape[1], within)
        return cls(logits, labels, shares, weights_to(target, labels, shares))

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
        classes = self.num_classes
        means = torch.bincount(self.labels, self.shares * values, classes)
        away = (values - means[self.labels]).square()
        own = (self.weights.square() * away).sum()
        crowding = torch.bincount(self.labels, self.shares.square(), classes)  # 1/n of equal ones
        several = (crowding > 0) & (crowding < 1 - 1e-9)
        if several.any():
            within = torch.bincount(self.labels, self.shares * away, classes)
            usual = (within[several] / (1 - crowding[several])).mean()
        else:
            usual = self.weights @ (values - self.weights @ values).square()
        mass = torch.bincount(self.labels, self.weights, classes)
        return float((own + usual * (mass * crowding).square().sum()).sqrt())


def weights_to(target: Prior, labels: Tensor, shares: Tensor) -> Tensor:
    """The shares times what the target gives to each class, summing to one."""
    weights = target.probs[labels] * shares
    if not weights.sum() > 0:
        raise ValueError(
            "no sample counts: the target prior gives all to classes that have no samples here; "
            "use another target, or samples of its classes"
        )
    return weights / weights.sum()


def _shares(labels: Tensor, num_classes: int, within: ArrayLike | None) -> Tensor:
    if within is None:
        return 1 / torch.bincount(labels, minlength=num_classes).double()[labels]
    given = as_tensor(within).detach().to("cpu", torch.float64)
    if given.shape != labels.shape or not (given.isfinite() & (given >= 0)).all():
        raise ValueError(
            f"weights must be finite numbers, none negative, one for each of {len(labels)} "
            f"samples, got an array of shape {tuple(given.shape)}: {given.flatten()[:10].tolist()}"
        )
    totals = torch.bincount(labels, given, num_classes)
    return torch.where(given > 0, given / totals[labels], 0.0)
