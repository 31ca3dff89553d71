"""Named tensors of .safetensors files as NumPy arrays, some rows of them at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from safetensors import safe_open

from longtail.data.tables.arrays import ArrayHeader, mapped_blocks
from longtail.data.tables.errors import check_is_file, reading

_DTYPES = {
    **{f"F{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    **{f"I{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"U{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    "BOOL": np.dtype(bool),
    "BF16": np.dtype("u2"),  # the upper half of a float32, which it is read as
}


@dataclass(frozen=True)
class SafetensorsFile:
    """What the header of a file says: type, shape and place, from `base` on, of each tensor."""

    path: Path
    metadata: dict[str, str]
    entries: dict[str, dict[str, Any]]
    base: int

    @classmethod
    def open(cls, path: Path) -> SafetensorsFile:
        """Of a file whose header fits what is stored."""
        check_is_file(path)
        with reading(path, "a safetensors file"):
            # Opening checks types, shapes, and that the tensors fill the file without overlaps.
            with safe_open(path, framework="np") as checked:
                metadata = dict(checked.metadata() or {})
            with path.open("rb") as file:
                (length,) = struct.unpack("<Q", file.read(8))
                entries = msgspec.json.decode(file.read(length), type=dict[str, dict[str, Any]])
        entries.pop("__metadata__", None)
        return cls(path, metadata, entries, 8 + length)

    @property
    def names(self) -> list[str]:
        """What the tensors are called."""
        return list(self.entries)

    def header(self, name: str) -> ArrayHeader:
        """Shape and type of a tensor as it is read."""
        entry = self.entries[name]
        stored = _DTYPES.get(entry["dtype"])
        if stored is None:
            raise ValueError(f"{name!r} of {self.path} is of type {entry['dtype']}; convert it")
        dtype = np.dtype(np.float32) if entry["dtype"] == "BF16" else stored
        return ArrayHeader(tuple(entry["shape"]), False, dtype)

    def load(self, name: str) -> npt.NDArray[Any]:
        """A small tensor, in memory."""
        with reading(self.path, "a safetensors file"):
            return self._widened(name, np.array(self._mapped(name)))

    def blocks(self, name: str, rows: int) -> Iterator[npt.NDArray[Any]]:
        """The rows of a tensor, at most so many at a time."""
        with reading(self.path, "a safetensors file"):
            for block in mapped_blocks(lambda: self._mapped(name), rows):
                yield self._widened(name, block)

    def _mapped(self, name: str) -> npt.NDArray[Any]:
        shape, stored = self.header(name).shape, _DTYPES[self.entries[name]["dtype"]]
        if 0 in shape:
            return np.empty(shape, stored)
        start = self.base + self.entries[name]["data_offsets"][0]
        return np.memmap(self.path, stored, "r", start, shape)

    def _widened(self, name: str, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.entries[name]["dtype"] != "BF16":
            return numbers
        return (numbers.astype(np.uint32) << 16).view(np.float32)
