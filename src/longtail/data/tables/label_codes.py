"""Labels as files have them, numbers or names, before anyone has said what the classes are.

Kept as the distinct values and, for each sample, the position of its own among them: ten million
labels are 80 MB, however long the names.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Indices, Numbers
from longtail.core.labels import check_num_classes
from longtail.core.memory import check_memory

LABEL_BYTES = 40  # of memory that a label takes while the distinct ones are looked for
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # of 64 bits; longer ones are names


@dataclass(frozen=True, eq=False)
class LabelCodes:
    """Labels of N samples: the distinct ones as text, and where that of each sample stands there.

    They are `stored_as_numbers` if the file's own type was an integer: then no label is a name.

    >>> codes = LabelCodes.of_texts(["fox", "cat", "fox"])
    >>> codes.values, codes.codes.tolist(), codes.counts()
    (('fox', 'cat'), [0, 1, 0], {'fox': 2, 'cat': 1})
    """

    values: tuple[str, ...]
    codes: Indices
    stored_as_numbers: bool = False

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> LabelCodes:
        """From text, where "3" may be the fourth class or the name of one."""
        seen: dict[str, int] = {}
        codes = array("q", (seen.setdefault(text, len(seen)) for text in texts))
        return cls(tuple(seen), np.array(codes, dtype=np.int64))

    @classmethod
    def of_array(cls, labels: Numbers, where: str) -> LabelCodes:
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
        if labels.dtype.kind in "iu" and labels.size and 0 <= labels.min() <= labels.max() < 2**20:
            used = np.bincount(labels.astype(np.int64)) > 0  # small numbers need no sorting
            values, codes = np.flatnonzero(used), (np.cumsum(used) - 1)[labels]
        else:
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

    def as_indices(self, num_classes: int, classes: Sequence[str] | None, where: str) -> Indices:
        """Class indices as int64, or a ValueError that says `where`.

        Text is a class name if all of it is; else all of it must be indices.
        """
        names = {name: index for index, name in enumerate(classes or ())}
        if self.stored_as_numbers or not all(value in names for value in self.values):
            if not are_whole_numbers(self.values):
                self._refuse(names, where)
            names = {str(index): index for index in range(num_classes)}
        if not all(value in names for value in self.values):
            row = self._first_outside(names)
            raise ValueError(
                f"{where} must lie in 0 to {num_classes - 1} for {num_classes} classes, "
                f"got {self.values[self.codes[row]]} in row {row}; "
                "labels count from 0, in the order of the columns of scores"
            )
        return np.array([names[value] for value in self.values], dtype=np.int64)[self.codes]

    def _refuse(self, names: dict[str, int], where: str) -> NoReturn:
        row = self._first_outside(names)
        wanted, remedy = "but the class names are not known", "give them in the order of the scores"
        if names:
            listed = first_few(map(repr, names), 5)
            wanted = f"which is none of the {len(names)} class names ({listed})"
            remedy = "give the right class names, or correct the label"
        label = self.values[self.codes[row]]
        raise ValueError(f"{where} has {label!r:.80} in row {row}, {wanted}; {remedy}")

    def _first_outside(self, names: dict[str, int]) -> int:
        outside = np.array([value not in names for value in self.values])
        return int(outside[self.codes].argmax())


@dataclass(frozen=True)
class LabelCounts:
    """How many samples each label has, in the order of the classes.

    If labels are `numbered`, some may be left out because they have no sample. They `are_indices`
    if they can be nothing else, as those of an integer type; in text a number may be a name.
    """

    counts: Mapping[str, int]
    numbered: bool = False
    are_indices: bool = False

    @classmethod
    def of_codes(cls, labels: LabelCodes, names: Sequence[str] | None, where: str) -> LabelCounts:
        """Count labels; those of known names count zero where they are absent."""
        if names is None:
            counted = cls.of_names(labels.counts(), where)
            return replace(counted, are_indices=labels.stored_as_numbers)
        return cls(LabelCodes(tuple(names), labels.as_indices(len(names), names, where)).counts())

    @classmethod
    def of_counts(cls, counts: Sequence[int] | Mapping[str, int], where: str) -> LabelCounts:
        """From counts in the order of the classes, or by name, of which one must have samples."""
        if isinstance(counts, Mapping):
            by_label = counts
        else:
            by_label = {str(index): number for index, number in enumerate(counts)}
        if not any(by_label.values()):
            raise ValueError(
                f"{where} counts no samples at all; give the counts of a set that has some"
            )
        if not isinstance(counts, Mapping):
            return cls(by_label, numbered=True, are_indices=True)
        ordered = cls.of_names(by_label, where)
        # Whoever lists classes by name may do so in the order of a model: it is kept.
        return ordered if ordered.numbered else cls(by_label)

    @classmethod
    def of_names(cls, counts: Mapping[str, int], where: str) -> LabelCounts:
        """From counts by label, put in order: numbers by size, names by the alphabet."""
        if not counts:
            raise ValueError(f"{where} has no class in it; give one sample of one at least")
        numbered = are_whole_numbers(counts)
        order = sorted(counts, key=int if numbered else None)
        if numbered and int(order[0]) < 0:
            raise ValueError(
                f"{where} has the label {order[0]}, but class indices count from 0; "
                "leave out samples without a class"
            )
        return cls({label: counts[label] for label in order}, numbered)


def align_counts(sets: Sequence[LabelCounts]) -> tuple[tuple[str, ...], list[tuple[int, ...]]]:
    """The classes of all sets, and for each set one count a class.

    Numbers are class indices: those between that no set has are classes without samples. If that
    would be most of them, the numbers are ids, and only those that occur are classes.

    >>> align_counts([LabelCounts({"0": 5, "2": 1}, True), LabelCounts({"1": 4}, True)])
    (('0', '1', '2'), [(5, 0, 1), (0, 4, 0)])
    """
    if len({part.numbered for part in sets}) > 1:
        numbered, named = sorted(sets, key=lambda part: not part.numbered)
        raise ValueError(
            f"one set has numbers for labels ({first_few(map(repr, numbered.counts))}), the other "
            f"names ({first_few(map(repr, named.counts))}); say the classes of both the same way"
        )
    labels = list(dict.fromkeys(label for part in sets for label in part.counts))
    if sets[0].numbered:
        top = max(map(int, labels))
        dense = top + 1 <= 2 * len(labels)
        labels = [str(index) for index in range(top + 1)] if dense else sorted(labels, key=int)
    return tuple(labels), [tuple(part.counts.get(label, 0) for label in labels) for part in sets]


def first_few(texts: Iterable[str], most: int = 3) -> str:
    """The first of a list, and dots if there are more."""
    shown = list(islice(texts, most + 1))
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


def are_whole_numbers(texts: Iterable[str]) -> bool:
    """Whether every text is a whole number, written as one: 7, not 007 or 7.0."""
    return all(_WHOLE_NUMBER.fullmatch(text) for text in texts)


def classes_of(values: Collection[str], num_samples: int, where: str) -> tuple[str, ...]:
    """The classes that labels tell by themselves: up to the largest number, or by the alphabet."""
    if not are_whole_numbers(values):
        return tuple(sorted(values))
    number = check_num_classes(max(*map(int, values), 0) + 1, num_samples, f"labels of {where}")
    return tuple(map(str, range(number)))


def as_names(values: Numbers, where: str) -> tuple[str, ...]:
    """The entries of an array as text, bytes read as UTF-8, or a ValueError that says `where`."""
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        raise ValueError(
            f"{where} must be names or whole numbers in one dimension, got {values.dtype} of shape "
            f"{values.shape}; save a list of texts"
        )
    return as_texts(values, where)


def as_texts(values: Numbers | Sequence[object], where: str) -> tuple[str, ...]:
    """Names and numbers as text, bytes read as UTF-8, or a ValueError that says `where`."""
    try:
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        names = tuple(v.decode() if isinstance(v, bytes) else str(v) for v in plain)
        "".join(names).encode("utf-8")  # halves of characters cannot be written again
        return names
    except (ValueError, SystemError) as error:  # the latter for numbers that are no characters
        raise ValueError(f"{where} holds what is no text in UTF-8 ({error}); correct it") from error
