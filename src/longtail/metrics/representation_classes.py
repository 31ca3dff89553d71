"""Features at the door of every measure of them, walked class by class in blocks of rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import as_kind_of, as_rows, as_tensor, label_tensor

# Entries of a block in float64: 32 MB.
_BLOCK = 2**22
_ROWS = 2048  # and no more rows, so that the pairs of two blocks take no more


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Features and the places of each class's samples in them."""

    features: Any
    places: tuple[Tensor, ...]

    @property
    def dim(self) -> int:
        """The features' dimension."""
        return int(self.features.shape[1])

    def blocks(self, label: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Places and rows of one class, in float64 on the CPU, a block at a time."""
        size = max(1, min(_ROWS, _BLOCK // self.dim))
        for at in torch.split(self.places[label], size):
            if len(at):
                yield at, rows_at(self.features, at)

    def mean(self, label: int) -> Tensor:
        """The mean of one class; NaN without samples."""
        total = torch.zeros(self.dim, dtype=torch.float64, device="cpu")
        for _, rows in self.blocks(label):
            total += rows.sum(dim=0)
        return total / len(self.places[label])


def rows_at(features: Any, places: Tensor) -> Tensor:
    """Some rows, in float64 on the CPU; of a memory-mapped array only these are read."""
    if isinstance(features, Tensor):
        return features.detach()[places.to(features.device)].to("cpu", torch.float64)
    return as_tensor(np.asarray(features[places.numpy()])).double()


def by_class(features: Array, labels: ArrayLike, num_classes: int) -> ClassRows:
    """The features of each class, or a ValueError."""
    rows = as_rows(features)
    known = label_tensor(labels, num_classes).cpu()
    if len(rows.shape) != 2 or len(rows) != len(known):
        raise ValueError(
            f"features must have shape (N, D) with a row for each of {len(known)} labels, "
            f"got {tuple(rows.shape)}"
        )
    counts = torch.bincount(known, minlength=num_classes)
    return ClassRows(rows, torch.split(known.argsort(stable=True), counts.tolist()))


def class_means(features: Array, labels: ArrayLike, num_classes: int) -> Array:
    """The mean feature of each class, shape (C, D), float64; NaN for a class without samples.

    >>> class_means([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]], [0, 0, 2], num_classes=3).tolist()
    [[1.0, 1.0], [nan, nan], [5.0, 5.0]]
    """
    rows = by_class(features, labels, num_classes)
    return as_kind_of(torch.stack([rows.mean(label) for label in range(num_classes)]), features)


def check_rows(values: ArrayLike, name: str) -> Tensor:
    """One row a class in float64 on the CPU, or a ValueError."""
    checked = as_tensor(values).detach().to("cpu", torch.float64)
    if checked.dim() != 2:
        raise ValueError(f"{name} must have shape (C, D), got {tuple(checked.shape)}")
    return checked
