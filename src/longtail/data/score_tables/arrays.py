"""Scores in .npy and .npz files, without pickles.

A memory map is opened anew for each block, since what was read through one counts as memory of the
process for as long as it is open. Members of an .npz are unpacked as they are read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from longtail.data.files.arrays import (
    ArrayHeader,
    load_npz,
    map_npy,
    npy_header,
    npz_header,
    npz_names,
    read_header,
)
from longtail.data.files.errors import reading
from longtail.data.files.label_codes import LabelCodes, as_names
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


def read_npy(path: Path, kind: Kind, layout: Layout) -> Contents:
    """One array of shape (N, C)."""
    header = npy_header(path)
    shape = check_shape(header.shape, path)

    def read(rows: int) -> Iterator[Matrix]:
        for start in range(0, shape[0], rows):
            mapped = map_npy(path)
            with reading(path, "an npy file"):
                block = np.array(mapped[start : start + rows])
            del mapped
            yield block

    return Contents(shape, floating(header.dtype, path), read)


def read_npz(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named arrays: the scores, and where they are there labels, counts and classes."""
    names = npz_names(path)
    chosen = scores_name(names, kind, layout.scores, path)
    labels = optional_name(names, LABEL_NAMES, layout.labels, path)
    classes = optional_name(names, CLASS_NAMES, None, path)
    header = npz_header(path, chosen)
    shape = check_shape(header.shape, path)
    dtype = floating(header.dtype, path)
    counts = "counts" if "counts" in names else None
    # Before any of them is unpacked.
    _check_length(path, labels, shape[0], "has {1} rows but {0!r} has {2} labels")
    _check_length(path, classes, shape[1], "must name each of the {1} classes once, {0!r} has {2}")
    _check_length(path, counts, shape[1], "must have {0!r} of all {1} classes, got {2}")
    small = load_npz(path, filter(None, (labels, classes, counts)))
    return Contents(
        shape,
        dtype,
        lambda rows: _unpacked(path, chosen, header, rows),
        labels=LabelCodes.of_array(small[labels], f"{labels!r} of {path}") if labels else None,
        classes=as_names(small[classes], f"{classes!r} of {path}") if classes else None,
        counts=small.get("counts"),
        array=chosen,
    )


def _check_length(path: Path, name: str | None, number: int, said: str) -> None:
    shape = () if name is None else npz_header(path, name).shape
    if len(shape) == 1 and shape[0] != number:
        wrong = said.format(name, number, shape[0])
        raise ValueError(f"{path} {wrong}; give one each, in the same order")


def _unpacked(path: Path, name: str, header: ArrayHeader, rows: int) -> Iterator[Matrix]:
    samples, classes = header.shape
    if header.by_columns and header.dtype.itemsize * samples * classes > _MOST_UNPACKED:
        raise ValueError(
            f"{path} holds {name!r} in column order, too large to be turned in memory; "
            "save numpy.ascontiguousarray of it, or an npy file"
        )
    with reading(path, "an npz file"), ZipFile(path) as stored, stored.open(f"{name}.npy") as file:
        read_header(file)
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
