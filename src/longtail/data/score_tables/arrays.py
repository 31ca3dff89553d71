"""Scores in .npy and .npz files, without pickles.

A memory map is opened anew for each block, since what was read through one counts as memory of the
process for as long as it is open. Members of an .npz are unpacked as they are read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from zipfile import ZipFile

import numpy as np
from numpy.lib import format as npy

from longtail.data.files.errors import reading
from longtail.data.files.label_codes import LabelCodes, as_names
from longtail.data.files.stored_arrays import read_array
from longtail.data.score_tables.contents import (
    CLASS_NAMES,
    LABEL_NAMES,
    Contents,
    Kind,
    Layout,
    Matrix,
    check_shape,
    floating,
    optional_name,
    scores_name,
)

# An array in column order has to be unpacked whole before it has a row.
_MOST_UNPACKED = 2**28


class Header(NamedTuple):
    """What stands before the numbers."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def read_npy(path: Path, kind: Kind, layout: Layout) -> Contents:
    """One array of shape (N, C)."""
    with reading(path, "an npy file"), path.open("rb") as file:
        header = _header(file)
        np.load(path, mmap_mode="r", allow_pickle=False)  # as long as its header says
    shape = check_shape(header.shape, path)

    def read(rows: int) -> Iterator[Matrix]:
        for start in range(0, shape[0], rows):
            with reading(path, "an npy file"):
                mapped = np.load(path, mmap_mode="r", allow_pickle=False)
                block = np.array(mapped[start : start + rows])
            del mapped
            yield block

    return Contents(shape, floating(header.dtype, path), read)


def read_npz(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named arrays: the scores, and where they are there labels, counts and classes."""
    with reading(path, "an npz file"), ZipFile(path) as stored:
        names = [name.removesuffix(".npy") for name in stored.namelist() if name.endswith(".npy")]
    chosen = scores_name(names, kind, layout.scores, path)
    labels = optional_name(names, LABEL_NAMES, layout.labels, path)
    classes = optional_name(names, CLASS_NAMES, None, path)
    with reading(path, "an npz file"):
        with ZipFile(path) as stored, stored.open(f"{chosen}.npy") as file:
            header = _header(file)
        small = {
            name: read_array(path, name) for name in (labels, classes, "counts") if name in names
        }
    shape = check_shape(header.shape, path)
    return Contents(
        shape,
        floating(header.dtype, path),
        lambda rows: _unpacked(path, chosen, header, rows),
        labels=LabelCodes.of_array(small[labels], f"{labels!r} of {path}") if labels else None,
        classes=as_names(small[classes]) if classes else None,
        counts=small.get("counts"),
        array=chosen,
    )


def _unpacked(path: Path, name: str, header: Header, rows: int) -> Iterator[Matrix]:
    samples, classes = header.shape
    if header.by_columns and header.dtype.itemsize * samples * classes > _MOST_UNPACKED:
        raise ValueError(
            f"{path} holds {name!r} in column order, too large to be turned in memory; "
            "save numpy.ascontiguousarray of it, or an npy file"
        )
    with reading(path, "an npz file"), ZipFile(path) as stored, stored.open(f"{name}.npy") as file:
        _header(file)
        if header.by_columns:
            whole = _numbers(file, header.dtype, samples * classes).reshape(classes, samples).T
            for start in range(0, samples, rows):
                yield np.ascontiguousarray(whole[start : start + rows])
            return
        for start in range(0, samples, rows):
            number = min(rows, samples - start)
            yield _numbers(file, header.dtype, number * classes).reshape(number, classes)
        file.read(1)  # at its end the checksum is compared


def _numbers(file: IO[bytes], dtype: np.dtype[Any], number: int) -> Matrix:
    data = file.read(number * dtype.itemsize)
    if len(data) != number * dtype.itemsize:
        raise EOFError(f"{number} numbers expected, the file ended before")
    return np.frombuffer(data, dtype)


def _header(file: IO[bytes]) -> Header:
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in read:
        raise ValueError(f"npy version {version} is not one of plain numbers")
    header = Header(*cast(Any, read[version](file)))
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects, which only a pickle could read")
    return header
