r"""Sums over blocks of features, merged so that every scatter stays about its own class mean.

A class with n samples, mean μ and scatter S, and m more with mean ν and scatter T, has together

    mean μ + m/(n+m) (ν − μ),        scatter S + T + n·m/(n+m) (ν − μ)(ν − μ)ᵀ.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core.tensors import label_tensor
from longtail.heads.distances import unit

Scatter: TypeAlias = Literal["none", "pooled", "per_class"]


class MomentSums:
    """What `class_moments` adds block by block; use it where features come as a stream.

    Args:
        num_classes: How many classes there are.
        dim: The features' dimension.
        scatter: "none", "pooled" or "per_class".
        origin: If given, subtracted from the features, which are then scaled to length one.

    >>> sums = MomentSums(2, 1)
    >>> sums.add(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1]))
    >>> sums.add(torch.tensor([[2.0]]), torch.tensor([0]))
    >>> sums.values()["means"].tolist()
    [[1.5], [3.0]]
    """

    def __init__(
        self, num_classes: int, dim: int, scatter: Scatter = "none", origin: Tensor | None = None
    ) -> None:
        if scatter not in ("none", "pooled", "per_class"):
            raise ValueError(f'scatter must be "none", "pooled" or "per_class", got {scatter!r}')
        self._counts = _zeros(num_classes).long()
        self._means = _zeros(num_classes, dim)
        self._origin = origin
        self._pooled = _zeros(dim, dim) if scatter == "pooled" else None
        self._own = _zeros(num_classes, dim, dim) if scatter == "per_class" else None

    def add(self, features: Tensor, labels: Tensor) -> None:
        """Add samples, in any order and any number of calls."""
        rows = transformed(features, self._origin)
        known = label_tensor(labels, len(self._counts)).cpu()
        if rows.shape != (len(known), self._means.shape[1]):
            raise ValueError(
                f"features must have shape ({len(known)}, {self._means.shape[1]}), a row a label, "
                f"got {tuple(rows.shape)}"
            )
        if not rows.isfinite().all():
            bad = int((~rows.isfinite()).any(1).nonzero()[0])
            raise ValueError(f"features must be finite, but row {bad} of this block is not")
        number = torch.bincount(known, minlength=len(self._counts))
        present = number.nonzero().flatten()
        place, number = torch.searchsorted(present, known), number[present]
        before, added = self._counts[present].double(), number.double()
        means = _zeros(len(present), rows.shape[1])
        means.index_add_(0, place, rows).div_(added[:, None])
        steps = means - self._means[present]
        merge = (before * added / (before + added))[:, None]
        if self._pooled is not None:
            centred = rows - means[place]
            self._pooled += centred.T @ centred + (merge * steps).T @ steps
        if self._own is not None:
            for at, label in enumerate(present.tolist()):
                centred = rows[place == at] - means[at]
                moved = merge[at] * torch.outer(steps[at], steps[at])
                self._own[label] += centred.T @ centred + moved
        self._means[present] += steps * (added / (before + added))[:, None]
        self._counts[present] += number

    def values(self) -> dict[str, Any]:
        """The fields of `ClassMoments` so far."""
        means = self._means.clone()
        means[self._counts == 0] = torch.nan
        pooled = self._own.sum(0) if self._own is not None else self._pooled
        return {
            "counts": self._counts.clone(),
            "means": means,
            "scatter": None if pooled is None else pooled.clone(),
            "scatters": None if self._own is None else self._own.clone(),
        }


def transformed(features: Tensor, origin: Tensor | None) -> Tensor:
    """The features in float64 on the CPU; centred and of length one if there is an origin."""
    wide = features.detach().to("cpu", torch.float64)
    return wide if origin is None else unit(wide - origin)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.float64, device="cpu")
