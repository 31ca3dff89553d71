"""One array of an .npy or .npz file, without pickles; names that were stored as objects too.

A column of names that comes from pandas is an array of Python objects, which NumPy would have to
unpickle, and that may run any code. Where it holds nothing but text or whole numbers, these are
read out of it opcode by opcode, and nothing is run.
"""

from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from longtail.data.files.errors import ObjectsError
from longtail.data.files.pickled import ByteArray, read_plain_data

_MOST_BYTES = 2**28  # of objects: ten million names


def read_array(path: Path, name: str | None = None) -> npt.NDArray[Any]:
    """The array of an .npy, or the one of that name in an .npz."""
    try:
        return _loaded(path, name)
    except ValueError as error:
        if not str(error).startswith("Object arrays"):
            raise
    where = str(path) if name is None else f"{name!r} of {path}"
    if name is None:
        with path.open("rb") as file:
            return _plain_objects(file, where)
    with ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
        return _plain_objects(member, where)


def _loaded(path: Path, name: str | None) -> npt.NDArray[Any]:
    if name is None:
        whole: npt.NDArray[Any] = np.load(path, allow_pickle=False)
        return whole
    with np.load(path, allow_pickle=False) as stored:
        array: npt.NDArray[Any] = stored[name]
        return array


def _plain_objects(file: IO[bytes], where: str) -> npt.NDArray[Any]:
    version = npy.read_magic(file)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    read_header(file)
    pickled = file.read(_MOST_BYTES + 1)
    try:
        if len(pickled) > _MOST_BYTES:
            raise ValueError(f"of more than {_MOST_BYTES:,} bytes")
        found = read_plain_data(pickled, where)
    except ValueError as error:
        raise ObjectsError(_refused(where, "of other kinds than text and numbers")) from error
    values = found.plain if isinstance(found, ByteArray) else None
    if values is None:
        raise ObjectsError(_refused(where, "in several dimensions"))
    for kind in (str, int):
        if all(type(value) is kind for value in values):
            return np.array(values, dtype=kind)
    # The first that is no name among names, or no class number.
    kind = str if isinstance(values[0], str) else int
    row = next(at for at, value in enumerate(values) if type(value) is not kind)
    raise ObjectsError(_refused(where, f"such as {values[row]!r} in row {row}"))


def _refused(where: str, what: str) -> str:
    return (
        f"{where} holds Python objects {what}, which only unpickling could read, and that may run "
        "any code; save names as text, numpy.array(names, dtype=str), or class numbers as int64, "
        "one for every row"
    )
