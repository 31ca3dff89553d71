"""Rows in blocks, as NumPy arrays: the one place that cuts them."""

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from longtail.core.arrays import as_numpy
from longtail.core.disk_rows import on_disk

BLOCK = 2**22  # numbers: 32 MB in float64


def slices(num_rows: int, row_size: int, numbers: int = BLOCK) -> Iterator[slice]:
    """Slices that cover so many rows, each of about so many numbers and one row at least.

    >>> list(slices(5, row_size=100, numbers=200))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, numbers // max(1, row_size))
    for start in range(0, num_rows, step):
        yield slice(start, min(start + step, num_rows))


def blocks(
    rows: Any, *columns: Any, numbers: int = BLOCK
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Blocks of rows of any kind, and of what belongs to them, such as their labels.

    Memory maps are read from their file, so that no more than a block is in memory.
    """
    rows = on_disk(rows)
    size = 1
    for length in rows.shape[1:]:
        size *= int(length)
    for part in slices(int(rows.shape[0]), size, numbers):
        yield (as_numpy(rows[part]), *(as_numpy(column[part]) for column in columns))
