"""Rows of a memory-mapped array, read from its file instead of through the map.

A system may map megabytes around each row that is looked at and count them all as memory of the
process. What is read here is held as long as it is used, and no longer.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt


class DiskRows:
    """An array of rows in a file: `rows[start:stop]` and `rows[positions]` are fresh arrays.

    Args:
        path: The file.
        offset: The first byte of the first row.
        dtype: Of the numbers.
        shape: Rows and numbers in a row.
    """

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
        self._offset = offset
        self._size = shape[1] * dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: slice | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                raise IndexError(f"rows on the disk are read in order, got a step of {step}")
            rows = np.empty((max(0, stop - start), self.shape[1]), self.dtype)
            self._read(rows, start)
            return rows
        rows = np.empty((len(at), self.shape[1]), self.dtype)
        for place, row in enumerate(at.tolist()):
            self._read(rows[place], row)
        return rows

    def _read(self, into: npt.NDArray[Any], row: int) -> None:
        if not into.size:
            return
        left, where = into.data.cast("B"), self._offset + row * self._size
        while left:
            read = os.preadv(self._file, [left], where)
            if not read:
                raise OSError(f"{self._path} ends before row {row}; it was cut short since")
            left, where = left[read:], where + read


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
