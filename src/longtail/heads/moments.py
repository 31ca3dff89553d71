r"""Class moments: counts, means and scatters of features, in one pass over blocks of rows.

    μ_y = (1/n_y) Σ_{i: y_i=y} Φ_i,        S = Σ_i (Φ_i − μ_{y_i})(Φ_i − μ_{y_i})ᵀ      (NCM eq. 1)

All heads in closed form are set from these. Sums are kept in float64 about the running means, so
that a large common mean costs no digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.disk_rows import on_disk
from longtail.core.tensors import as_rows, as_tensor, label_tensor
from longtail.heads.moment_sums import MomentSums, Scatter, transformed

# Entries of a block in float64: 32 MB.
_BLOCK = 2**22


class MomentOptions(TypedDict, total=False):
    """What a head needs of its moments: `class_moments(..., **head.moment_options)`."""

    scatter: Scatter
    normalise: bool
    fourth: bool


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the features of each class, float64, on the CPU.

    Attributes:
        counts: Samples of each class, int64.
        means: Shape (C, D); NaN for a class without samples.
        scatter: Σ_i (Φ_i − μ_{y_i})(Φ_i − μ_{y_i})ᵀ over all classes, shape (D, D), or None.
        scatters: The same of each class, shape (C, D, D), or None.
        fourth: Σ_i ‖Φ_i − μ_{y_i}‖⁴, which Ledoit and Wolf's shrinkage needs, or None.
        origin: If the features were centred and scaled to length one first, what was subtracted.
    """

    counts: Tensor
    means: Tensor
    scatter: Tensor | None = None
    scatters: Tensor | None = None
    fourth: float | None = None
    origin: Tensor | None = None

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
        features: Shape (N, D), torch or NumPy, of any floating type. A memory-mapped array is read
            a block at a time.
        labels: Class indices, shape (N,).
        num_classes: How many classes there are, those without samples included.
        scatter: "none", "pooled" for one D × D matrix, "per_class" for C of them.
        normalise: Whether to subtract the mean of all features and scale each to length one first
            (cl2n): one more pass.
        fourth: Whether to add the fourth moment: one more pass, since it needs the means.
        block: Rows to read at a time; by default 32 MB of them.

    >>> moments = class_moments([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]], [0, 0, 1], 2, "pooled")
    >>> moments.means.tolist(), moments.scatter.tolist()
    ([[1.0, 1.0], [5.0, 5.0]], [[2.0, 0.0], [0.0, 0.0]])
    """
    rows = on_disk(as_rows(features))
    known = label_tensor(labels, num_classes).cpu()
    if len(rows.shape) != 2 or len(rows) != len(known) or not len(known):
        raise ValueError(
            f"features must have shape (N, D) with a row for each of {len(known)} labels and at "
            f"least one, got {tuple(rows.shape)}"
        )
    size = max(1, _BLOCK // rows.shape[1]) if block is None else block
    if size < 1:
        raise ValueError(f"block must be at least one row, got {block}")
    origin = _mean(rows, size) if normalise else None
    sums = MomentSums(num_classes, rows.shape[1], scatter, origin)
    for at, part in _blocks(rows, size):
        sums.add(part, known[at])
    moments = ClassMoments(**sums.values(), origin=origin)
    if not fourth:
        return moments
    powers = sum(
        float((transformed(part, origin) - moments.means[known[at]]).square().sum(1).square().sum())
        for at, part in _blocks(rows, size)
    )
    return replace(moments, fourth=powers)


def check_moments(
    moments: ClassMoments, num_classes: int, dim: int, *, normalised: bool = False
) -> Tensor:
    """The class means, or a ValueError if they are not those this head needs."""
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
        wanted = "" if normalised else "out"
        raise ValueError(
            f"this head needs moments of features with{wanted} centring and scaling; "
            f"make them with class_moments(..., normalise={normalised})"
        )
    return moments.means


def _blocks(rows: Any, size: int) -> Iterator[tuple[slice, Tensor]]:
    for start in range(0, len(rows), size):
        at = slice(start, start + size)
        yield at, as_tensor(rows[at])


def _mean(rows: Any, size: int) -> Tensor:
    mean = torch.zeros(rows.shape[1], dtype=torch.float64, device="cpu")
    for at, part in _blocks(rows, size):
        wide = transformed(part, None)
        mean += (wide - mean).sum(0) / (at.start + len(wide))
    return mean
