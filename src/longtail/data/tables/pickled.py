"""The plain data in a pickle, without unpickling it: CIFAR's files, and names in .npy and .npz.

The opcodes are read and only those are followed that make dictionaries, lists, tuples, numbers,
text, bytes and NumPy arrays of bytes or of such plain values. Nothing is imported and nothing is
called, so a hostile file can do no more than be refused. Strings of Python 2 come out as bytes, as
with encoding="bytes".

A column of names that comes from pandas is saved by NumPy as a pickle of an array of Python
objects; where it holds nothing but text or whole numbers, these are read out of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pickletools import genops
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Numbers, text_array
from longtail.core.memory import check_memory
from longtail.data.tables.errors import ObjectsError

# What NumPy arrays and, in protocol 2, bytes are made with. All else is refused.
_MAKERS = {
    "numpy.core.multiarray _reconstruct": "array",
    "numpy._core.multiarray _reconstruct": "array",
    "numpy ndarray": "type",
    "numpy dtype": "dtype",
    "_codecs encode": "encode",
}
_DTYPES = {name: kind for kind in ("u1", "O8", "O4") for name in (kind, kind.encode())}
_MOST_BYTES = 2**28  # of objects: ten million names
_MOST_STEPS = 2**22  # of CIFAR's files, which take a quarter of a million
_CHUNK = 2**20
# Of an array: an entry takes three, made, remembered and appended; and some are there before it.
_STEPS_EACH, _STEPS_BEFORE = 4, 1000
_STEP_BYTES = 64  # of memory that a step takes: an empty list


@dataclass(eq=False)
class ByteArray:
    """An array in a pickle, which is filled after it was made: of uint8, or of plain values."""

    values: npt.NDArray[np.uint8] | None = None
    plain: list[Any] | None = None


@dataclass(frozen=True)
class _Named:
    """What a pickle would call, or the type of an array; here only its name."""

    name: str


def read_plain_data(pickled: bytes, where: str, most_steps: int = _MOST_STEPS) -> Any:
    """The value, with each array as a `ByteArray`; a ValueError for anything that is not plain.

    Few bytes can make many objects: no more steps are followed than `most_steps`.
    """
    stack = _Stack(len(pickled))
    try:
        for step, (opcode, argument, _) in enumerate(genops(pickled)):
            if opcode.name == "STOP":
                break
            if step >= most_steps:
                raise ValueError(f"it takes more than {most_steps:,} steps")
            stack.follow(opcode.name, argument)
        (value,) = stack.items
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(
            f"{where} cannot be read as a pickle of plain data and arrays of bytes ({error}); "
            "it is damaged, or not the official file: download it again"
        ) from error
    return value


def read_objects(file: IO[bytes], shape: tuple[int, ...], where: str) -> Numbers:
    """The names or numbers of an array of objects in an .npy, whose header has been read."""
    chunks = iter(partial(file.read, _CHUNK), b"")  # all at once would take as much memory
    pickled = b"".join(islice(chunks, _MOST_BYTES // _CHUNK + 1))
    steps = _STEPS_EACH * math.prod(shape) + _STEPS_BEFORE
    check_memory(_STEP_BYTES * min(steps, len(pickled)), where)
    try:
        if len(pickled) > _MOST_BYTES:
            raise ValueError(f"of more than {_MOST_BYTES:,} bytes")
        array = read_plain_data(pickled, where, steps)
    except ValueError as error:
        raise _refused(where, "of other kinds than text and numbers") from error
    values = array.plain if isinstance(array, ByteArray) else None
    if values is None or shape != (len(values),):
        raise _refused(where, "in another shape than one for every row")
    kind = str if values and isinstance(values[0], str) else int
    # The first that is no name among names, or no class number.
    row = next((at for at, value in enumerate(values) if type(value) is not kind), None)
    if row is not None:
        raise _refused(where, f"such as {values[row]!r} in row {row}")
    return np.array(values) if kind is int and values else text_array(values, where)


def _refused(where: str, what: str) -> ObjectsError:
    return ObjectsError(
        f"{where} holds Python objects {what}, which only unpickling could read, and that may run "
        "any code; save names as text, numpy.array(names, dtype=str), or class numbers as int64, "
        "one for every row"
    )


@dataclass
class _Stack:
    """The machine that a pickle is a program for, with the few opcodes that plain data needs."""

    bytes_left: int  # to make of text: as many as the pickle has
    items: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def follow(self, opcode: str, argument: Any) -> None:
        if opcode in _LITERALS:
            self.items.append(argument)
        elif opcode in _PYTHON_2_STRINGS:
            self.items.append(argument.encode("latin-1"))
        elif opcode in _PUT:
            self.memo[argument] = self.items[-1]
        elif opcode in _GET:
            self.items.append(self.memo[argument])
        elif opcode in _ACTIONS:
            _ACTIONS[opcode](self)
        elif opcode == "GLOBAL":
            self.items.append(_maker(argument))
        elif opcode not in ("PROTO", "FRAME"):
            raise ValueError(f"it has the opcode {opcode}, which plain data does not need")

    def pop(self, number: int) -> list[Any]:
        """The last items, taken off."""
        if len(self.items) < number:
            raise ValueError("it takes more than there is")
        start = len(self.items) - number
        taken = self.items[start:]
        del self.items[start:]
        return taken

    def pop_to_mark(self) -> list[Any]:
        return self.pop(len(self.items) - self.marks.pop())

    def put_pairs(self, items: list[Any]) -> None:
        if not all(isinstance(key, str | bytes) for key in items[::2]):
            raise ValueError("it has keys that are no text")
        self.items[-1].update(zip(items[::2], items[1::2], strict=True))

    def dictionary(self) -> None:
        items = self.pop_to_mark()
        self.items.append({})
        self.put_pairs(items)

    def call(self) -> None:
        maker, arguments = self.pop(2)
        name = maker.name if isinstance(maker, _Named) else None
        if name == "array":
            self.items.append(ByteArray())
        elif name == "dtype" and arguments[0] in _DTYPES:
            self.items.append(_Named(_DTYPES[arguments[0]]))
        elif name == "encode" and arguments[1] in ("latin1", b"latin1"):
            self.bytes_left -= len(arguments[0])
            if self.bytes_left < 0:
                raise ValueError("it makes more bytes than it has")
            self.items.append(arguments[0].encode("latin-1"))
        else:
            raise ValueError("it calls for something else than bytes and arrays of them")

    def build(self) -> None:
        (state,) = self.pop(1)
        made = self.items[-1]
        if isinstance(made, ByteArray):
            _fill(made, *state)
        elif not isinstance(made, _Named) or made.name not in _DTYPES:  # byte order: nothing
            raise ValueError("it gives a state to something that is no array")


def _maker(name: str) -> _Named:
    if name not in _MAKERS:
        raise ValueError(f"it asks for {name.replace(' ', '.')}, which is not admitted")
    return _Named(_MAKERS[name])


def _fill(array: ByteArray, _: Any, shape: Any, dtype: Any, is_fortran: Any, data: Any) -> None:
    kind = dtype.name if isinstance(dtype, _Named) else None
    if kind in ("O8", "O4") and isinstance(data, list) and shape == (len(data),):
        if not all(isinstance(value, str | bytes | int | float | None) for value in data):
            raise ValueError("it has an array of something else than plain values")
        array.plain = data
    elif kind == "u1" and isinstance(data, bytes):
        flat: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        array.values = flat.reshape(shape, order="F" if is_fortran else "C")
    else:
        raise ValueError("it has an array of something else than bytes")


_PYTHON_2_STRINGS = {"STRING", "BINSTRING", "SHORT_BINSTRING"}
_LITERALS = {
    *("NONE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}
_PUT = {"PUT", "BINPUT", "LONG_BINPUT"}
_GET = {"GET", "BINGET", "LONG_BINGET"}
_ACTIONS: dict[str, Callable[[_Stack], None]] = {
    "NEWTRUE": lambda stack: stack.items.append(True),
    "NEWFALSE": lambda stack: stack.items.append(False),
    "EMPTY_DICT": lambda stack: stack.items.append({}),
    "EMPTY_LIST": lambda stack: stack.items.append([]),
    "EMPTY_TUPLE": lambda stack: stack.items.append(()),
    "MARK": lambda stack: stack.marks.append(len(stack.items)),
    "LIST": lambda stack: stack.items.append(stack.pop_to_mark()),
    "TUPLE": lambda stack: stack.items.append(tuple(stack.pop_to_mark())),
    "TUPLE1": lambda stack: stack.items.append(tuple(stack.pop(1))),
    "TUPLE2": lambda stack: stack.items.append(tuple(stack.pop(2))),
    "TUPLE3": lambda stack: stack.items.append(tuple(stack.pop(3))),
    "DICT": _Stack.dictionary,
    "APPEND": lambda stack: stack.items[-2].append(stack.items.pop()),
    "APPENDS": lambda stack: stack.items[stack.marks[-1] - 1].extend(stack.pop_to_mark()),
    "SETITEM": lambda stack: stack.put_pairs(stack.pop(2)),
    "SETITEMS": lambda stack: stack.put_pairs(stack.pop_to_mark()),
    "MEMOIZE": lambda stack: stack.memo.__setitem__(len(stack.memo), stack.items[-1]),
    "STACK_GLOBAL": lambda stack: stack.items.append(_maker(" ".join(stack.pop(2)))),
    "REDUCE": _Stack.call,
    "BUILD": _Stack.build,
}
