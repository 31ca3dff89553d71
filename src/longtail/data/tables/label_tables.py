"""Tables of labels: which column holds them, which tells the split, and which may be counts.

A table of a row a sample has its labels counted. One of a row a class, where no label comes twice,
says the counts itself in a column called "count" or the like; where it may and does not say so, it
is refused: counted as labels every class would have one sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longtail.core.labels import MOST
from longtail.data.tables.label_codes import LabelCodes, LabelCounts, are_whole_numbers, first_few
from longtail.data.tables.layout import ID_NAMES, Table, column_place, is_row_index
from longtail.data.tables.names import WHOLE, split_named
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.text import TextTable, suffix_of

_LABEL_NAMES = ("label", "labels", "class", "class_name", "category", "target", "y")
_SPLIT_NAMES = ("split", "subset", "partition")
_SURE_COUNT_NAMES = ("count", "counts", "samples", "num_samples", "n_samples")
_COUNT_NAMES = (*_SURE_COUNT_NAMES, "n", "num", "number")
_LOOKED_AT = 1000  # rows that decide which column tells the split


class LabelTable(NamedTuple):
    """A table, and where its labels and splits stand."""

    table: Table
    label: int
    split: int | None

    @classmethod
    def open(cls, path: Path, column: str | int | None, header: bool | None) -> LabelTable:
        """Of a file; arguments as for `read_labels`."""
        table: Table
        if suffix_of(path) == ".parquet":
            table = ParquetTable.open(path)
            samples, example = [], list(table.names)
        else:
            plain = TextTable.open(path)
            samples = list(islice(plain.rows(), _LOOKED_AT))
            if header is None:
                header = isinstance(column, str) or _names_columns(samples)
            table, example = replace(plain, has_header=header), samples[-1]
            samples = samples[header:]
        split = next((at for at in range(table.width) if _tells_split(table, samples, at)), None)
        label = _label_place(table, example, column, split)
        return cls(table, label, None if split == label else split)

    def labels(self) -> dict[str, LabelCodes]:
        """The labels of each split; under "all" if there are no splits."""
        labels, splits = self._rows()
        return {split: labels.only(rows) for split, rows in splits.items()}

    def counts(self) -> dict[str, LabelCounts]:
        """Labels counted; of a table of a row a class what its column of counts says."""
        (labels, splits), path = self._rows(), self.table.path
        is_row_a_class = len(labels.codes) > 1 and all(
            len(np.unique(labels.codes[rows])) == rows.sum() for rows in splits.values()
        )
        at = self._count_column() if is_row_a_class else None
        if not is_row_a_class:
            self._check_no_counts(labels, splits)
        if at is None:
            return {
                split: LabelCounts.of_codes(labels.only(rows), None, str(path))
                for split, rows in splits.items()
            }
        _, (numbers,) = self.table.labels(at)
        if not are_whole_numbers(numbers.values) or not all(
            0 <= int(number) < MOST for number in numbers.values
        ):
            name = (self.table.names or ())[at]
            raise ValueError(
                f"{path} has every label once and a column {name!r}, which must then be whole "
                f"numbers from 0 on, got {first_few(map(repr, numbers.values))}; correct it, or "
                "rename it if it does not count the samples of each label"
            )
        texts = [labels.values[code] for code in labels.codes]
        counts = [int(numbers.values[code]) for code in numbers.codes]
        return {
            split: LabelCounts.of_counts(
                {texts[row]: counts[row] for row in np.flatnonzero(rows)}, str(path)
            )
            for split, rows in splits.items()
        }

    def _rows(self) -> tuple[LabelCodes, dict[str, npt.NDArray[np.bool_]]]:
        """The label of every row, and which rows are of each split."""
        path, beside = self.table.path, () if self.split is None else (self.split,)
        num_rows, (labels, *splits) = self.table.labels(self.label, *beside)
        if not num_rows:
            raise ValueError(f"{path} has no rows under its header; give a file with labels")
        if "" in labels.values:
            row = int((labels.codes == labels.values.index("")).argmax())
            raise ValueError(
                f"{path} has no label in row {row}, column {self.label}; leave that row out"
            )
        return labels, _by_split(splits[0], path) if splits else {WHOLE: np.ones(num_rows, bool)}

    def _others(self) -> list[int]:
        """The columns beside label and split."""
        return [at for at in range(self.table.width) if at not in (self.label, self.split)]

    def _check_no_counts(
        self, labels: LabelCodes, splits: Mapping[str, npt.NDArray[np.bool_]]
    ) -> None:
        """A ValueError if there are but labels and counts, and a label twice."""
        names, others = self.table.names, self._others()
        if names is None or len(others) != 1 or names[others[0]].lower() not in _SURE_COUNT_NAMES:
            return
        for rows in splits.values():
            often = np.bincount(labels.codes[rows], minlength=len(labels.values))
            if often.max() > 1:
                raise ValueError(
                    f"{self.table.path} has a column {names[others[0]]!r} and "
                    f"{labels.values[int(often.argmax())]!r:.80} twice: leave one of them out, or "
                    "that column, if each row is a sample"
                )

    def _count_column(self) -> int | None:
        """Where a table of a row a class says how many samples it has; a ValueError if it may."""
        named = self.table.names is not None
        names = self.table.names or [""] * self.table.width
        others = self._others()
        called = [at for at in others if names[at].lower() in _COUNT_NAMES]
        if called or len(others) != 1:
            return called[0] if called else None
        name, texts = names[others[0]], self.table.head(others[0], _LOOKED_AT)
        is_id = name.lower().endswith(ID_NAMES) or is_row_index(name if named else None, texts)
        if are_whole_numbers(texts) and not is_id:
            raise ValueError(
                f"{self.table.path} has every label once, and a whole number beside each: if that "
                "is the number of its samples, call it count in a first line that names the "
                "columns (class,count); if not, leave that column out"
            )
        return None


def _names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has the usual name of a column; of counts only above a number."""
    usual = {text.strip().lower() for text in rows[0]} & {*_LABEL_NAMES, *_SPLIT_NAMES}
    pairs = zip(*rows[:2], strict=False) if len(rows) > 1 and len(rows[0]) > 1 else ()
    return bool(usual) or any(
        first.strip().lower() in _COUNT_NAMES and second.strip().isdigit()
        for first, second in pairs
    )


def _tells_split(table: Table, rows: Sequence[Sequence[str]], at: int) -> bool:
    if table.names is not None and table.names[at].lower() in _SPLIT_NAMES:
        return True
    return bool(rows) and all(len(row) > at and split_named(row[at]) for row in rows)


def _label_place(
    table: Table, example: Sequence[str], column: str | int | None, split: int | None
) -> int:
    names, width = table.names, len(example)
    if column is not None:
        return column_place(column, names, width, table.path)
    lowered = [name.lower() for name in names or ()]
    called = next((usual for usual in _LABEL_NAMES if usual in lowered), None)
    if called is not None:
        return column_place(called, lowered, width, table.path)
    others = [at for at in range(width) if at != split]
    if len(others) > 1:
        others = [at for at in others if not names or lowered[at] not in _COUNT_NAMES] or others
    if len(others) == 1:
        return others[0]
    shown = (f"{(names or range(width))[at]} ({example[at].strip()[:20]!r})" for at in others[:10])
    raise ValueError(
        f"{table.path} has {width} columns and none is called label: {', '.join(shown)}; "
        "say with column (--column) which one holds the labels, by name or by place from 0"
    )


def _by_split(splits: LabelCodes, path: Path) -> dict[str, npt.NDArray[np.bool_]]:
    parts = [split_named(value) for value in splits.values]
    if None in parts:
        raise ValueError(
            f"{path} has {splits.values[parts.index(None)]!r} in the column that tells the split, "
            "expected train, validation or test; correct it, or leave that column out"
        )
    return {
        split: np.array([part == split for part in parts])[splits.codes]
        for split in ("train", "validation", "test")
        if split in parts
    }
