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
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Numbers, is_torch
from longtail.core.files import written_whole

if TYPE_CHECKING:
    from torch import Tensor

_CODES = {"bool": "BOOL", "bfloat16": "BF16", "complex64": "C64"}
_CODES |= {f"float{bits}": f"F{bits}" for bits in (64, 32, 16)}
_CODES |= {f"int{bits}": f"I{bits}" for bits in (64, 32, 16, 8)}
_CODES |= {f"uint{bits}": f"U{bits}" for bits in (64, 32, 16, 8)}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items() if code != "BF16"}
_DTYPES["BF16"] = np.dtype("uint16")


def can_store(dtype: npt.DTypeLike) -> bool:
    """Whether tensors of this type can be written."""
    return np.dtype(dtype).name in _CODES


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Numbers | Tensor],
    metadata: Mapping[str, str],
) -> None:
    """Write the file, whole or not at all; tensors that share memory are written each."""
    parts = {name: _bytes_of(name, tensor) for name, tensor in tensors.items()}
    # As safetensors has it: by size of their numbers, so that all are aligned, then by name.
    ordered = {name: parts[name] for name in sorted(parts, key=lambda n: (-parts[n].itemsize, n))}
    with written_whole(path) as part, part.open("wb") as file:
        _write_header(file, dict(sorted(metadata.items())), ordered)
        for tensor in ordered.values():
            file.write(tensor.content.data)


def begin_tensor_file(
    file: IO[bytes],
    metadata: Mapping[str, str],
    small: Mapping[str, Numbers],
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> None:
    """Write all but the rows of the large tensor, which comes last and is to follow."""
    # By size of their numbers, so that all are aligned.
    arrays = dict(sorted(small.items(), key=lambda item: -item[1].dtype.itemsize))
    gap = -sum(array.nbytes for array in arrays.values()) % 8
    if gap:  # the format knows no gaps: a tensor that nobody asks for fills it
        arrays["_padding"] = np.zeros(gap, np.int8)
    parts = {key: _bytes_of(key, array) for key, array in arrays.items()}
    large = _Part(dtype.itemsize, _CODES[dtype.name], shape, np.empty(0))
    _write_header(file, dict(metadata), {**parts, name: large})
    for part in parts.values():
        file.write(part.content.data)


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

    def mapped(self) -> Numbers:
        """Read from the disk as it is looked at, but for bfloat16."""
        return self.rows(slice(None)) if self.code == "BF16" else self._map()

    def rows(self, at: slice) -> Numbers:
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

    def _map(self) -> Numbers:
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
    tensors = {}
    for name, entry in entries.items():
        start = 8 + length + entry["data_offsets"][0]
        tensors[name] = StoredTensor(path, entry["dtype"], tuple(entry["shape"]), start)
    return metadata, tensors


def map_tensor_file(path: Path) -> tuple[dict[str, str], dict[str, Numbers]]:
    """The metadata and the tensors of a file, read from the disk as they are looked at."""
    metadata, tensors = open_tensor_file(path)
    return metadata, {name: tensor.mapped() for name, tensor in tensors.items()}


HeaderT = TypeVar("HeaderT", bound="Versioned")


class Versioned(msgspec.Struct):
    """What every header says: the version of its format, so that later readers know it."""

    version: int


class Format(NamedTuple):
    """A kind of file, such as "head": who writes it, and the versions that are read."""

    name: str
    made_by: str
    versions: tuple[int, ...] = (1,)


def decode_header(
    text: str | bytes | None, kind: type[HeaderT], path: Path, expected: Format
) -> HeaderT:
    """The JSON header of a file, None if it has none, or a ValueError that names the file."""
    try:
        if text is None:
            raise ValueError("it has no header of one")
        header = msgspec.json.decode(text, type=kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is no {expected.name} file, or a damaged one ({error}); such files are made "
            f"by {expected.made_by}"
        ) from error
    if header.version not in expected.versions:
        raise ValueError(
            f"{path} was written in version {header.version} of the {expected.name} format, this "
            f"longtail reads {' and '.join(map(str, expected.versions))}; use the longtail that "
            "wrote it, or a newer one"
        )
    return header


class _Part(NamedTuple):
    itemsize: int
    code: str  # the format's, of its type
    shape: tuple[int, ...]
    content: Numbers


def _bytes_of(name: str, tensor: Numbers | Tensor) -> _Part:
    code = _CODES.get(str(tensor.dtype).removeprefix("torch."))
    if code is None:
        raise ValueError(f"tensors of {tensor.dtype} cannot be stored, got one called {name}")
    shape = tuple(tensor.shape)
    if is_torch(tensor):
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
        return _Part(tensor.element_size(), code, shape, flat.numpy())
    return _Part(tensor.dtype.itemsize, code, shape, np.ascontiguousarray(tensor))


def _write_header(file: IO[bytes], metadata: dict[str, str], parts: Mapping[str, _Part]) -> None:
    entries: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, part in parts.items():
        start, end = end, end + math.prod(part.shape) * part.itemsize
        entries[name] = {"dtype": part.code, "shape": part.shape, "data_offsets": (start, end)}
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
