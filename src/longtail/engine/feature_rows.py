"""Rows of features, wherever they lie: blocks to pass over all, or some by position.

float16 is widened as it is read. Of a memory-mapped array no more is in memory than was asked for.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array, refuse_lossy
from longtail.core.blocks import on_disk
from longtail.losses.minimise import for_autograd

BLOCK = 2**22  # numbers read at once: 16 MB in float32


class FeatureRows:
    """Features of shape (N, D), read in float32, or float64 if they are.

    Args:
        features: A tensor, an array or a memory-mapped array of a floating type.
    """

    def __init__(self, features: Array) -> None:
        refuse_lossy(features)
        given: Any = features if isinstance(features, Tensor) else np.asanyarray(features)
        floating = (
            given.is_floating_point() if isinstance(given, Tensor) else given.dtype.kind == "f"
        )
        if given.ndim != 2 or not floating:
            raise ValueError(
                "features must be of a floating type and shape (samples, numbers), "
                f"got {given.dtype} of shape {tuple(given.shape)}"
            )
        self._rows = for_autograd(given.detach()) if isinstance(given, Tensor) else on_disk(given)
        wide = given.dtype in (torch.float64, np.float64)
        self.dtype = torch.float64 if wide else torch.float32

    @property
    def dim(self) -> int:
        """How many numbers a row has."""
        return int(self._rows.shape[1])

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    def blocks(self, numbers: int = BLOCK) -> Iterator[tuple[slice, Tensor]]:
        """All rows in file order, as many at a time as that many numbers allow."""
        size = max(1, numbers // self.dim)
        for start in range(0, len(self), size):
            at = slice(start, min(start + size, len(self)))
            yield at, self._read(at)

    def check_finite(self, what: str) -> None:
        """Raise if there is NaN or infinity: one pass over all rows."""
        for at, block in self.blocks():
            if not block.isfinite().all():
                row = at.start + int((~block.isfinite()).any(dim=1).nonzero()[0])
                raise ValueError(
                    f"{what} must be finite numbers, got NaN or infinity in row {row}; "
                    "the backbone that made them has diverged"
                )

    def take(self, positions: Tensor) -> Tensor:
        """The rows at these positions."""
        return self._read(positions if isinstance(self._rows, Tensor) else positions.numpy())

    def _read(self, at: Any) -> Tensor:
        rows = self._rows[at]
        if not isinstance(rows, Tensor):
            wide = np.float64 if self.dtype == torch.float64 else np.float32
            rows = torch.from_numpy(rows.astype(wide, copy=not rows.flags.writeable))
        return rows.to(self.dtype)
