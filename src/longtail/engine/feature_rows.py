"""Rows of features, wherever they lie: blocks to pass over all, or some by position.

float16 is widened as it is read. Of a memory-mapped array no more is in memory than was asked for.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array, refuse_lossy
from longtail.core.blocks import BLOCK, on_disk, slices
from longtail.losses.kernel import for_autograd

_DTYPES = ("float16", "bfloat16", "float32", "float64")


class FeatureRows:
    """Features of shape (N, D), read in float32, or float64 if they are.

    Of a tensor, an array, a memory map, or whatever hands out rows by slices.
    """

    def __init__(self, features: Array) -> None:
        refuse_lossy(features)
        rows: Any = features if hasattr(features, "dtype") else np.asarray(features)
        dtype, shape = str(rows.dtype).removeprefix("torch."), tuple(rows.shape)
        if len(shape) != 2 or dtype not in _DTYPES:
            raise ValueError(
                "features must be of shape (N, D) and float16, float32 or float64, "
                f"got {rows.dtype} of shape {shape}"
            )
        is_tensor = isinstance(rows, Tensor)
        self._rows = for_autograd(rows.detach()) if is_tensor else on_disk(rows)
        self.dtype = torch.float64 if dtype == "float64" else torch.float32
        self.device = rows.device if is_tensor else torch.device("cpu")
        self.dim = int(shape[1])

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    def blocks(self, numbers: int | None = None, width: int = 1) -> Iterator[tuple[slice, Tensor]]:
        """All rows in file order; a row counts as `width` numbers if it has fewer."""
        for at in slices(len(self), max(self.dim, width), numbers or BLOCK):
            yield at, self.read(at)

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
        return self.read(positions if isinstance(self._rows, Tensor) else positions.numpy())

    def read(self, at: Any) -> Tensor:
        """The rows of a slice, without a copy where they are in memory in this precision."""
        rows = self._rows[at]
        if not isinstance(rows, Tensor):
            wide = np.float64 if self.dtype == torch.float64 else np.float32
            rows = np.ascontiguousarray(rows, dtype=wide)
            # torch warns of memory that it may not write to.
            rows = torch.from_numpy(rows if rows.flags.writeable else rows.copy())
        return rows.to(self.dtype)
