"""Arrays in .npy and .npz files, without pickles, whose headers are looked at before their numbers.

A header says how large an array is. It must agree with what is stored, and what is stored must fit
into memory: a small .npz can unpack to anything. Of arrays of Python objects only names and whole
numbers are read. Blocks of rows are read without the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, NamedTuple, cast
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from longtail.core.arrays import Numbers
from longtail.core.blocks import slices
from longtail.core.memory import check_memory
from longtail.data.tables.errors import check_is_file, naming, reading
from longtail.data.tables.pickled import read_objects

_NPY, _NPZ = "an npy file", "an npz file"
# NumPy lets Python parse the header, which may stumble over it in many ways.
_PARSING = (TokenError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError)
_LARGEST = 2**62  # bytes; NumPy counts them in 64 bits
_MOST_TURNED = 2**28  # bytes: an array in column order has to be unpacked whole before it has a row


class ArrayHeader(NamedTuple):
    """What stands before the numbers."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many bytes the numbers take."""
        return math.prod(self.shape) * self.dtype.itemsize


def npy_header(path: Path) -> ArrayHeader:
    """The header of an .npy file that is as long as it says."""
    check_is_file(path)
    with reading(path, _NPY), path.open("rb") as file:
        return _checked_header(file, path.stat().st_size)


def load_npy(path: Path) -> Numbers:
    """The array of an .npy file."""
    header = npy_header(path)
    check_memory(header.size, str(path))
    with reading(path, _NPY), path.open("rb") as file:
        return _read_array(file, header, str(path))


def map_npy(path: Path) -> Numbers:
    """The array of an .npy file, read from the disk as it is looked at."""
    npy_header(path)
    with reading(path, _NPY):
        return cast(Numbers, np.load(path, mmap_mode="r", allow_pickle=False))


def npy_blocks(path: Path, rows: int) -> Iterator[Numbers]:
    """The rows of an .npy file, at most so many at a time."""
    for at in slices(npy_header(path).shape[0], 1, rows):
        # Mapped anew: what was read through a map is memory of the process until it is closed.
        mapped = map_npy(path)
        with reading(path, _NPY):
            block = np.array(mapped[at])
        del mapped
        yield block


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    check_is_file(path)
    with reading(path, _NPZ), ZipFile(path) as stored:
        names = [name.removesuffix(".npy") for name in stored.namelist() if name.endswith(".npy")]
    if len(set(names)) < len(names):
        ((twice, _),) = Counter(names).most_common(1)
        raise ValueError(f"{path} has the array {twice!r} twice; save it again")
    return names


def npz_header(path: Path, name: str) -> ArrayHeader:
    """The header of one array of an .npz file, which has as many numbers as it says."""
    with reading(path, _NPZ), ZipFile(path) as stored:
        member = stored.getinfo(f"{name}.npy")
        with stored.open(member) as file, naming(repr(name)):
            return _checked_header(file, member.file_size)


def load_npz(path: Path, names: Iterable[str]) -> dict[str, Numbers]:
    """Some arrays of an .npz file, if all of them fit into memory."""
    headers = {name: npz_header(path, name) for name in names}
    size = sum(header.size for header in headers.values())
    check_memory(size, f"{', '.join(headers)} of {path}")
    arrays: dict[str, Numbers] = {}
    with reading(path, _NPZ), ZipFile(path) as stored:
        for name, header in headers.items():
            with stored.open(f"{name}.npy") as file, naming(repr(name)):
                arrays[name] = _read_array(file, header, f"{name!r} of {path}")
                file.read(1)  # at its end the checksum is compared
    return arrays


def npz_blocks(path: Path, name: str, rows: int) -> Iterator[Numbers]:
    """The rows of an array in an .npz file, unpacked at most so many at a time."""
    header = npz_header(path, name)
    samples, width = header.shape
    if header.by_columns and header.size > _MOST_TURNED:
        raise ValueError(
            f"{path} holds {name!r} in column order, too large to be turned in memory; "
            "save numpy.ascontiguousarray of it, or an npy file"
        )
    with reading(path, _NPZ), ZipFile(path) as stored, stored.open(f"{name}.npy") as file:
        _read_header(file)
        if header.by_columns:
            whole = _numbers(file, header.dtype, samples * width).reshape(width, samples).T
            yield from (np.ascontiguousarray(whole[at]) for at in slices(samples, 1, rows))
            return
        for at in slices(samples, 1, rows):
            yield _numbers(file, header.dtype, (at.stop - at.start) * width).reshape(-1, width)
        file.read(1)  # at its end the checksum is compared


def _numbers(file: IO[bytes], dtype: np.dtype[Any], number: int) -> Numbers:
    data = file.read(number * dtype.itemsize)
    if len(data) != number * dtype.itemsize:
        raise EOFError(f"{number} numbers expected, the file ended before")
    return np.frombuffer(data, dtype)


def _read_array(file: IO[bytes], header: ArrayHeader, where: str) -> Numbers:
    if not header.dtype.hasobject:
        return npy.read_array(file, allow_pickle=False)
    _read_header(file)
    return read_objects(file, header.shape, where)


def _checked_header(file: IO[bytes], size: int) -> ArrayHeader:
    """The header of an array of so many bytes, header and all, or a ValueError."""
    header = _read_header(file)
    stored = size - file.tell()
    if stored != header.size and not header.dtype.hasobject:  # a pickle is of any size
        raise ValueError(
            f"its header says shape {header.shape} of {header.dtype}, which are {header.size:,} "
            f"bytes, but {stored:,} are there"
        )
    return header


def _read_header(file: IO[bytes]) -> ArrayHeader:
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in read:
        raise ValueError(f"npy version {version} is not one of plain numbers")
    try:
        header = ArrayHeader(*cast(Any, read[version](file)))
    except _PARSING as error:
        raise ValueError(f"its header is broken: {error}") from error
    if min(header.shape, default=0) < 0 or header.size > _LARGEST:
        raise ValueError(f"its header says it has the shape {header.shape}, which cannot be")
    return header
