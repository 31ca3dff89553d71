"""Safetensors files: the same bytes for the same content, written row by row, read as maps.

The format is eight bytes with the length of a JSON header, the header, and the tensors one after
the other. `safetensors` itself writes metadata in the order of a hash map, which differs from run
to run, gives the file to its owner alone, and cannot write rows as they arrive. Reading is checked
by it. Bfloat16, which NumPy does not have, is read as float32.
"""

from __future__ import annotations

import math
import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.arrays import is_torch
from longtail.core.files import written_whole

if TYPE_CHECKING:
    from torch import Tensor

_CODES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "complex64": "C64",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items() if code != "BF16"}
_DTYPES |= {"BF16": np.dtype("u2"), "U16": np.dtype("u2"), "U32": np.dtype("u4")}
_DTYPES |= {"U64": np.dtype("u8")}


def can_store(dtype: npt.DTypeLike) -> bool:
    """Whether tensors of this type can be written."""
    return np.dtype(dtype).name in _CODES


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, npt.NDArray[Any] | Tensor],
    metadata: Mapping[str, str],
) -> None:
    """Write the file, whole or not at all.

    Args:
        path: Where to.
        tensors: By name, NumPy's or torch's; those that share memory are written each.
        metadata: Goes into the header.
    """
    parts = {name: _bytes_of(name, tensor) for name, tensor in tensors.items()}
    # As safetensors has it: by size of their numbers, so that all are aligned, then by name.
    order = sorted(parts, key=lambda name: (-parts[name][0], name))
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name in order:
        _, code, shape, content = parts[name]
        entries[name] = {
            "dtype": code,
            "shape": shape,
            "data_offsets": (end, end + content.nbytes),
        }
        end += content.nbytes
    with written_whole(path) as part, part.open("wb") as file:
        _write_header(file, entries)
        for name in order:
            file.write(parts[name][3].data)


def begin_tensor_file(
    file: IO[bytes],
    metadata: Mapping[str, str],
    small: Mapping[str, npt.NDArray[Any]],
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> None:
    """Write all but the rows of the large tensor, which comes last and is to follow.

    Args:
        file: Where to.
        metadata: Goes into the header.
        small: The small tensors.
        name: Of the large tensor.
        dtype: Its type.
        shape: Its shape.
    """
    # By size of their numbers, so that all are aligned.
    arrays = dict(sorted(small.items(), key=lambda item: -item[1].dtype.itemsize))
    entries: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for key, array in arrays.items():
        entries[key] = _entry(array.dtype, array.shape, end)
        end += array.nbytes
    gap = -end % 8
    if gap:  # the format knows no gaps: a tensor that nobody asks for fills it
        arrays["_padding"] = np.zeros(gap, np.int8)
        entries["_padding"] = _entry(np.dtype(np.int8), (gap,), end)
        end += gap
    entries[name] = _entry(dtype, shape, end)
    _write_header(file, entries)
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).data)


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor of a file is, and of which type."""

    path: Path
    code: str
    shape: tuple[int, ...]
    start: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers as they are read."""
        return np.dtype(np.float32) if self.code == "BF16" else self._stored

    def mapped(self) -> npt.NDArray[Any]:
        """Read from the disk as it is looked at, but for bfloat16."""
        return self.rows(slice(None)) if self.code == "BF16" else self._map()

    def rows(self, at: slice) -> npt.NDArray[Any]:
        """Some rows, in memory."""
        # Mapped anew: what was read through a map is memory of the process until it is closed.
        numbers = np.array(self._map()[at])
        if self.code == "BF16":  # the upper half of a float32
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers

    @property
    def _stored(self) -> np.dtype[Any]:
        if self.code not in _DTYPES:
            raise ValueError(f"{self.path} has numbers of type {self.code}, which is not known")
        return _DTYPES[self.code]

    def _map(self) -> npt.NDArray[Any]:
        if not math.prod(self.shape):
            return np.empty(self.shape, self._stored)
        return np.memmap(self.path, self._stored, "r", self.start, self.shape)


def open_tensor_file(path: Path) -> tuple[dict[str, str], dict[str, StoredTensor]]:
    """The metadata of a file and where its tensors are, or a ValueError."""
    from safetensors import SafetensorError, safe_open

    try:
        # Opening checks all of the header: types, shapes, offsets that neither overlap nor leave
        # gaps, and that the file is as long as they say.
        with safe_open(path, framework="np") as checked:
            metadata = dict(checked.metadata() or {})
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            entries = msgspec.json.decode(file.read(length), type=dict[str, dict[str, Any]])
    except (SafetensorError, struct.error, RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read as a safetensors file ({error}); it is damaged, cut short or "
            "of another format: make it again"
        ) from error
    entries.pop("__metadata__", None)
    return metadata, {
        name: StoredTensor(
            path, entry["dtype"], tuple(entry["shape"]), 8 + length + entry["data_offsets"][0]
        )
        for name, entry in entries.items()
    }


def map_tensor_file(path: Path) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """The metadata and the tensors of a file, read from the disk as they are looked at."""
    metadata, tensors = open_tensor_file(path)
    return metadata, {name: tensor.mapped() for name, tensor in tensors.items()}


def read_tensor_file(path: Path) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """The metadata and the tensors of a file, in memory."""
    metadata, arrays = map_tensor_file(path)
    return metadata, {name: np.array(array) for name, array in arrays.items()}


def _entry(dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> dict[str, object]:
    size = math.prod(shape) * dtype.itemsize
    return {"dtype": _CODES[dtype.name], "shape": shape, "data_offsets": (start, start + size)}


def _bytes_of(
    name: str, tensor: npt.NDArray[Any] | Tensor
) -> tuple[int, str, tuple[int, ...], npt.NDArray[Any]]:
    """Bytes a number, the format's code of its type, the shape, and the content as an array."""
    code = _CODES.get(str(tensor.dtype).removeprefix("torch."))
    if code is None:
        raise ValueError(f"tensors of {tensor.dtype} cannot be stored, got one called {name}")
    shape = tuple(tensor.shape)
    if is_torch(tensor):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        return tensor.element_size(), code, shape, flat.view(sys.modules["torch"].uint8).numpy()
    return tensor.dtype.itemsize, code, shape, np.ascontiguousarray(tensor)


def _write_header(file: IO[bytes], entries: dict[str, Any]) -> None:
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
