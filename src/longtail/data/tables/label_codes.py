"""Labels as files have them, numbers or names, before anyone has said what the classes are.

Kept as the distinct values and, for each sample, the position of its own among them: ten million
labels are 80 MB, however long the names.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core.labels import check_num_classes
from longtail.core.memory import check_memory

LABEL_BYTES = 40  # of memory that a label takes while the distinct ones are looked for
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # of 64 bits; longer ones are names


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Labels of N samples.

    Attributes:
        values: The distinct labels as text.
        codes: For each sample where its label stands in `values`, int64.
        stored_as_numbers: Whether the file's own type was an integer, so that no label is a name.

    >>> codes = LabelCodes.of_texts(["fox", "cat", "fox"])
    >>> codes.values, codes.codes.tolist(), codes.counts()
    (('fox', 'cat'), [0, 1, 0], {'fox': 2, 'cat': 1})
    """

    values: tuple[str, ...]
    codes: npt.NDArray[np.int64]
    stored_as_numbers: bool = False

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> LabelCodes:
        """From text, where "3" may be the fourth class or the name of one."""
        seen: dict[str, int] = {}
        codes = array("q", (seen.setdefault(text, len(seen)) for text in texts))
        return cls(tuple(seen), np.array(codes, dtype=np.int64))

    @classmethod
    def of_array(cls, labels: npt.NDArray[Any], where: str) -> LabelCodes:
        """From an array of integers, strings or bytes, or a ValueError that says `where`."""
        if labels.ndim != 1:
            raise ValueError(
                f"{where} must have one label a sample in one dimension, got shape {labels.shape}; "
                "of one-hot rows or scores take the argmax first"
            )
        if labels.dtype.kind not in "iuUS":
            raise ValueError(
                f"{where} must be class indices of an integer type or class names, "
                f"got {labels.dtype}; convert them, for example with .astype('int64')"
            )
        check_memory(LABEL_BYTES * labels.size, where)
        values, codes = np.unique(labels, return_inverse=True)
        return cls(as_names(values, where), codes.astype(np.int64), labels.dtype.kind in "iu")

    def counts(self) -> dict[str, int]:
        """How often each label occurs."""
        number = np.bincount(self.codes, minlength=len(self.values))
        return dict(zip(self.values, number.tolist(), strict=True))

    def only(self, kept: npt.NDArray[np.bool_]) -> LabelCodes:
        """The labels of some of the samples."""
        used, codes = np.unique(self.codes[kept], return_inverse=True)
        values = tuple(self.values[code] for code in used)
        return LabelCodes(values, codes.astype(np.int64), self.stored_as_numbers)

    def as_indices(
        self, num_classes: int, classes: Sequence[str] | None, where: str
    ) -> npt.NDArray[np.int64]:
        """Class indices as int64, or a ValueError that says `where`.

        Text is a class name if all of it is; else all of it must be indices.
        """
        names = {name: index for index, name in enumerate(classes or ())}
        if self.stored_as_numbers or not all(value in names for value in self.values):
            if not are_whole_numbers(self.values):
                raise ValueError(self._unknown(names, where))
            names = {str(index): index for index in range(num_classes)}
        if not all(value in names for value in self.values):
            row = self._first_outside(names)
            raise ValueError(
                f"{where} must lie in 0 to {num_classes - 1} for {num_classes} classes, "
                f"got {self.values[self.codes[row]]} in row {row}; "
                "labels count from 0, in the order of the columns of scores"
            )
        return np.array([names[value] for value in self.values], dtype=np.int64)[self.codes]

    def _unknown(self, names: dict[str, int], where: str) -> str:
        row = self._first_outside(names)
        got = f"{where} has {self.values[self.codes[row]]!r} in row {row}"
        if not names:
            return f"{got}, but the class names are not known; give them in the order of the scores"
        listed = ", ".join(map(repr, list(names)[:5])) + (", ..." if len(names) > 5 else "")
        return (
            f"{got}, which is none of the {len(names)} class names ({listed}); "
            "give the right class names, or correct the label"
        )

    def _first_outside(self, names: dict[str, int]) -> int:
        outside = np.array([value not in names for value in self.values])
        return int(outside[self.codes].argmax())


def are_whole_numbers(texts: Iterable[str]) -> bool:
    """Whether every text is a whole number, written as one: 7, not 007 or 7.0."""
    return all(_WHOLE_NUMBER.fullmatch(text) for text in texts)


def classes_of(values: Collection[str], num_samples: int, where: str) -> tuple[str, ...]:
    """The classes that labels tell by themselves: up to the largest number, or by the alphabet."""
    if not are_whole_numbers(values):
        return tuple(sorted(values))
    number = check_num_classes(max(*map(int, values), 0) + 1, num_samples, f"labels of {where}")
    return tuple(map(str, range(number)))


def as_names(values: npt.NDArray[Any], where: str) -> tuple[str, ...]:
    """The entries of an array as text, bytes read as UTF-8, or a ValueError that says `where`."""
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        raise ValueError(
            f"{where} must be names or whole numbers in one dimension, got {values.dtype} of shape "
            f"{values.shape}; save a list of texts"
        )
    try:
        names = tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist())
        "".join(names).encode("utf-8")  # halves of characters cannot be written again
        return names
    except (ValueError, SystemError) as error:  # the latter for numbers that are no characters
        raise ValueError(f"{where} holds what is no text in UTF-8 ({error}); correct it") from error
