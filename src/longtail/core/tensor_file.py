"""Safetensors files larger than memory: written row by row, read as memory maps. No pickle.

The format is eight bytes with the length of a JSON header, the header, and the tensors one after
the other. Here the large tensor comes last, so that its rows can be written as they arrive.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import numpy.typing as npt

_NAMES = {
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "int8": "I8",
    "int64": "I64",
}
_DTYPES = {code: np.dtype(name) for name, code in _NAMES.items()}


def can_store(dtype: npt.DTypeLike) -> bool:
    """Whether tensors of this type can be written."""
    return np.dtype(dtype).name in _NAMES


def begin_tensor_file(
    file: IO[bytes],
    metadata: Mapping[str, str],
    small: Mapping[str, npt.NDArray[Any]],
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
) -> None:
    """Write all but the rows of the large tensor, which are to follow.

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
    text = msgspec.json.encode(entries)
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).data)


def map_tensor_file(path: Path) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """The metadata and the tensors of a file, read from the disk as they are looked at."""
    from safetensors import SafetensorError, safe_open

    try:
        # Opening checks all of the header: types, shapes, offsets that neither overlap nor leave
        # gaps, and that the file is as long as they say.
        with safe_open(path, framework="np") as checked:
            said = dict(checked.metadata() or {})
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            entries = msgspec.json.decode(file.read(length), type=dict[str, dict[str, Any]])
        entries.pop("__metadata__", None)
        return said, {key: _mapped(path, entry, 8 + length) for key, entry in entries.items()}
    except (SafetensorError, struct.error, RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read as a safetensors file ({error}); make it again"
        ) from error


def _mapped(path: Path, entry: Mapping[str, Any], base: int) -> npt.NDArray[Any]:
    dtype, shape = _DTYPES.get(entry["dtype"]), tuple(entry["shape"])
    if dtype is None:
        raise ValueError(f"numbers of type {entry['dtype']} are not known here")
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", base + entry["data_offsets"][0], shape)


def _entry(dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> dict[str, object]:
    size = math.prod(shape) * dtype.itemsize
    return {"dtype": _NAMES[dtype.name], "shape": shape, "data_offsets": (start, start + size)}
