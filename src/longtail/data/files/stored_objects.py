"""Names that an .npy or .npz holds as Python objects, read without unpickling.

A column of names that comes from pandas is an array of Python objects, which NumPy would have to
unpickle, and that may run any code. Where it holds nothing but text or whole numbers, these are
read out of it opcode by opcode, and nothing is run.
"""

from typing import IO, Any

import numpy as np
import numpy.typing as npt

from longtail.data.files.errors import ObjectsError
from longtail.data.files.pickled import ByteArray, read_plain_data

_MOST_BYTES = 2**28  # of objects: ten million names


def read_objects(file: IO[bytes], shape: tuple[int, ...], where: str) -> npt.NDArray[Any]:
    """The names or numbers of an array of objects, whose header has been read.

    Args:
        file: At the pickle that follows the header.
        shape: What the header says.
        where: What the array is called in messages.
    """
    pickled = file.read(_MOST_BYTES + 1)
    try:
        if len(pickled) > _MOST_BYTES:
            raise ValueError(f"of more than {_MOST_BYTES:,} bytes")
        found = read_plain_data(pickled, where)
    except ValueError as error:
        raise ObjectsError(_refused(where, "of other kinds than text and numbers")) from error
    values = found.plain if isinstance(found, ByteArray) else None
    if values is None or shape != (len(values),):
        raise ObjectsError(_refused(where, "in another shape than one for every row"))
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
