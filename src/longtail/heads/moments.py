r"""Class moments: counts, means and scatters of features, in one pass over blocks of rows.

    μ_y = (1/n_y) Σ_{i: y_i=y} Φ_i,        S = Σ_i (Φ_i − μ_{y_i})(Φ_i − μ_{y_i})ᵀ      (NCM eq. 1)

All heads in closed form are set from these. Sums are kept in float64 about the running means, so
that a large common mean costs no digits: a class with n samples, mean μ and scatter S, and m more
with mean ν and scatter T, has together

    mean μ + m/(n+m) (ν − μ),        scatter S + T + n·m/(n+m) (ν − μ)(ν − μ)ᵀ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.blocks import BLOCK, on_disk, slices
from longtail.core.tensors import as_rows, as_tensor, label_tensor
from longtail.heads.distances import unit

Scatter: TypeAlias = Literal["none", "pooled", "per_class"]


class MomentSums:
    """What `class_moments` adds block by block; use it where features come as a stream.

    An origin is subtracted from the features, which are then scaled to length one.

    >>> sums = MomentSums(2, 1)
    >>> sums.add(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 1]))
    >>> sums.add(torch.tensor([[2.0]]), torch.tensor([0]))
    >>> sums.moments().means.tolist()
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
        classes = label_tensor(labels, len(self._counts)).cpu()
        if rows.shape != (len(classes), self._means.shape[1]):
            raise ValueError(
                f"features must have shape ({len(classes)}, {self._means.shape[1]}), a row for "
                f"each label, got {tuple(rows.shape)}"
            )
        if not rows.isfinite().all():
            bad = int((~rows.isfinite()).any(1).nonzero()[0])
            raise ValueError(f"features must be finite, but row {bad} of this block is not")
        number = torch.bincount(classes, minlength=len(self._counts))
        present = number.nonzero().flatten()
        positions, number = torch.searchsorted(present, classes), number[present]
        before, added = self._counts[present].double(), number.double()
        means = _zeros(len(present), rows.shape[1])
        means.index_add_(0, positions, rows).div_(added[:, None])
        steps = means - self._means[present]
        merge = (before * added / (before + added))[:, None]
        if self._pooled is not None:
            centred = rows - means[positions]
            self._pooled += centred.T @ centred + (merge * steps).T @ steps
        if self._own is not None:
            for at, label in enumerate(present.tolist()):
                centred = rows[positions == at] - means[at]
                moved = merge[at] * torch.outer(steps[at], steps[at])
                self._own[label] += centred.T @ centred + moved
        self._means[present] += steps * (added / (before + added))[:, None]
        self._counts[present] += number

    def moments(self) -> ClassMoments:
        """Those of the samples so far."""
        means = self._means.clone()
        means[self._counts == 0] = torch.nan
        pooled = self._own.sum(0) if self._own is not None else self._pooled
        scatter, scatters = (None if part is None else part.clone() for part in (pooled, self._own))
        return ClassMoments(self._counts.clone(), means, scatter, scatters, origin=self._origin)


def transformed(features: Tensor, origin: Tensor | None) -> Tensor:
    """The features in float64 on the CPU; centred and of length one if there is an origin."""
    wide = features.detach().to("cpu", torch.float64)
    return wide if origin is None else unit(wide - origin)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.float64, device="cpu")


class MomentOptions(TypedDict, total=False):
    """What a head needs of its moments: `class_moments(..., **head.moment_options)`."""

    scatter: Scatter
    normalise: bool
    fourth: bool


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the features of each class, float64, on the CPU."""

    counts: Tensor  # samples of each class, int64
    means: Tensor  # (C, D), NaN for a class without samples
    scatter: Tensor | None = None  # S, (D, D)
    scatters: Tensor | None = None  # the same of each class, (C, D, D)
    fourth: float | None = None  # Σ_i ‖Φ_i − μ_{y_i}‖⁴, which Ledoit and Wolf's shrinkage needs
    origin: Tensor | None = None  # subtracted before features were scaled to length one

    @property
    def total(self) -> int:
        """How many samples there are."""
        return int(self.counts.sum())


def class_moments(
    features: Array,
    labels: ArrayLike,
    num_classes: int,
    scatter: Scatter = "none",
    *,
    normalise: bool = False,
    fourth: bool = False,
    block: int | None = None,
) -> ClassMoments:
    """The moments of each class's features.

    Args:
        features: Shape (N, D). A memory-mapped array is read a block at a time.
        labels: Class indices.
        num_classes: How many there are, those without samples included.
        scatter: "pooled" for one D × D matrix, "per_class" for C of them.
        normalise: Subtract the mean of all features and scale each to length one first (cl2n): one
            more pass.
        fourth: Add the fourth moment: one more pass, since it needs the means.
        block: Rows to read at a time; by default 32 MB of them.

    >>> moments = class_moments([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]], [0, 0, 1], 2, "pooled")
    >>> moments.means.tolist(), moments.scatter.tolist()
    ([[1.0, 1.0], [5.0, 5.0]], [[2.0, 0.0], [0.0, 0.0]])
    """
    rows = on_disk(as_rows(features))
    classes = label_tensor(labels, num_classes).cpu()
    if len(rows.shape) != 2 or len(rows) != len(classes) or not len(classes):
        raise ValueError(
            f"features must have shape (N, D) with a row for each of {len(classes)} labels and at "
            f"least one, got {tuple(rows.shape)}"
        )
    if block is not None and block < 1:
        raise ValueError(f"block must be at least one row, got {block}")
    numbers = BLOCK if block is None else block * rows.shape[1]
    origin = _mean(rows, numbers) if normalise else None
    sums = MomentSums(num_classes, rows.shape[1], scatter, origin)
    for at, part in _blocks(rows, numbers):
        sums.add(part, classes[at])
    moments = sums.moments()
    if not fourth:
        return moments
    powers = 0.0
    for at, part in _blocks(rows, numbers):
        centred = transformed(part, origin) - moments.means[classes[at]]
        powers += float(centred.square().sum(1).square().sum())
    return replace(moments, fourth=powers)


def check_moments(
    moments: ClassMoments,
    num_classes: int,
    dim: int,
    *,
    normalised: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The class means, or a ValueError if a head that squares them in that type cannot use them."""
    if moments.means.shape != (num_classes, dim):
        raise ValueError(
            f"the head has {num_classes} classes and dimension {dim}, "
            f"the moments have shape {tuple(moments.means.shape)}"
        )
    empty = (moments.counts == 0).nonzero().flatten().tolist()
    if empty:
        raise ValueError(
            f"every class needs samples to have a mean, classes {empty[:10]} have none; "
            "leave those classes out, or train a head that needs no means"
        )
    if normalised != (moments.origin is not None):
        with_or_out = "" if normalised else "out"
        raise ValueError(
            f"this head needs moments of features with{with_or_out} centring and scaling; "
            f"make them with class_moments(..., normalise={normalised})"
        )
    places = moments.means if moments.origin is None else moments.origin
    if not float(places.square().sum(dim=-1).max()) < torch.finfo(dtype).max:
        raise ValueError(
            f"features have means up to {float(places.abs().max()):.3g}, whose squares are beyond "
            f"{str(dtype).removeprefix('torch.')}; divide the features by such a number first"
        )
    return moments.means


def _blocks(rows: Any, numbers: int) -> Iterator[tuple[slice, Tensor]]:
    for at in slices(len(rows), rows.shape[1], numbers):
        yield at, as_tensor(rows[at])


def _mean(rows: Any, numbers: int) -> Tensor:
    mean = _zeros(rows.shape[1])
    for at, part in _blocks(rows, numbers):
        wide = transformed(part, None)
        mean += (wide - mean).sum(0) / (at.start + len(wide))
    return mean
