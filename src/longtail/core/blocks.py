"""Rows in blocks, as NumPy arrays: the one place that cuts them.

Rows of a memory-mapped array are read from its file instead of through the map: a system may map
megabytes around each row that is looked at and count them all as memory of the process.
"""

import math
import os
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from longtail.core.arrays import Indices, Numbers, as_numpy

BLOCK = 2**22  # numbers: 32 MB in float64
IN_CACHE = 2**17  # numbers that the next look at them still finds there
IN_CACHE_BESIDES = 2**16  # the same where other numbers are looked at between two looks
PER_CALL = 2**18  # so many that calling NumPy costs little beside them


def slices(num_rows: int, row_size: int, numbers: int = BLOCK) -> Iterator[slice]:
    """Slices that cover so many rows, each of about so many numbers and one row at least.

    >>> list(slices(5, row_size=100, numbers=200))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, numbers // max(1, row_size))
    for start in range(0, num_rows, step):
        yield slice(start, min(start + step, num_rows))


def blocks(rows: Any, *columns: Any, numbers: int = BLOCK) -> Iterator[tuple[Numbers, ...]]:
    """Blocks of rows of any kind, and of what belongs to them, such as their labels.

    Memory maps are read from their file, so that no more than a block is in memory.
    """
    rows = on_disk(rows)
    for part in slices(int(rows.shape[0]), math.prod(rows.shape[1:]), numbers):
        yield (as_numpy(rows[part]), *(as_numpy(column[part]) for column in columns))


class DiskRows:
    """Rows in a file from a byte on: `rows[start:stop]` and `rows[positions]` are fresh arrays."""

    ndim = 2

    def __init__(
        self,
        path: str | os.PathLike[str],
        offset: int,
        dtype: np.dtype[Any],
        shape: tuple[int, int],
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self._path, self._file = os.fspath(path), os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        self._offset, self._size = offset, shape[1] * dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: slice | Indices) -> Numbers:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                raise IndexError(f"rows on the disk are read in order, got a step of {step}")
            return self._read(np.empty((max(0, stop - start), self.shape[1]), self.dtype), start)
        rows = np.empty((len(at), self.shape[1]), self.dtype)
        for into, row in zip(rows, at.tolist(), strict=True):
            self._read(into, row)
        return rows

    def _read(self, into: Numbers, row: int) -> Numbers:
        if not into.size:
            return into
        left, where = into.data.cast("B"), self._offset + row * self._size
        while left:
            read = os.preadv(self._file, [left], where)
            if not read:
                raise OSError(f"{self._path} ends before row {row}; it was cut short since")
            left, where = left[read:], where + read
        return into


def on_disk(rows: Any) -> Any:
    """The rows of a read-only memory map as DiskRows, and anything else as it is."""
    root = rows
    while isinstance(getattr(root, "base", None), np.memmap):
        root = root.base
    if not isinstance(rows, np.memmap) or root.mode != "r" or root.filename is None:
        return rows
    if rows.ndim != 2 or not rows.flags.c_contiguous or not rows.size or not hasattr(os, "preadv"):
        return rows
    offset = root.offset + rows.ctypes.data - root.ctypes.data
    return DiskRows(root.filename, offset, rows.dtype, (rows.shape[0], rows.shape[1]))
