"""Labels in a column of a .csv, .tsv (also .gz) or .parquet file, by split where one is told.

Where the caller does not say which column holds the labels, it is one with a usual name or the only
one there is. A column called "split", or one of nothing but "train", "test" and the like, tells
the split.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.data.files.column_place import column_place
from longtail.data.files.label_codes import LabelCodes
from longtail.data.files.parquet import open_parquet, parquet_labels
from longtail.data.files.text import delimiter_of, rows_of
from longtail.data.label_files.splits import SPLITS, WHOLE, split_named

_LABEL_NAMES = ("label", "labels", "class", "class_name", "category", "target", "y")
_SPLIT_NAMES = ("split", "subset", "partition")
_PARTS = tuple(dict.fromkeys(SPLITS.values()))
_LOOKED_AT = 1000  # rows that decide which column tells the split


def text_labels(
    path: Path, column: str | int | None = None, header: bool | None = None
) -> dict[str, LabelCodes]:
    """The labels of each split, or all of them under "all"."""
    found = _find_columns(path, column, header)
    parts = array("b")
    labels = LabelCodes.of_texts(_labels(path, found, parts))
    if not len(labels.codes):
        raise ValueError(f"{path} has no rows under its header; give a file with labels")
    return _by_part(labels, np.array(parts))


def parquet_table_labels(path: Path, column: str | int | None = None) -> dict[str, LabelCodes]:
    """The labels of each split, or all of them under "all"."""
    file = open_parquet(path)
    names = file.schema_arrow.names
    split = next((at for at, name in enumerate(names) if name.lower() in _SPLIT_NAMES), None)
    label = _label_place(names, names, column, split, path)
    labels = parquet_labels(file, names[label], path)
    if not len(labels.codes):
        raise ValueError(f"{path} has no rows; give a file with labels")
    if split is None or split == label:
        return {WHOLE: labels}
    told = parquet_labels(file, names[split], path)
    parts = np.array([_part(value, path) for value in told.values])
    return _by_part(labels, parts[told.codes])


@dataclass(frozen=True)
class _Columns:
    """Which columns of a text table matter, counted from 0, and whether its first line is names."""

    label: int
    split: int | None
    has_header: bool


def _find_columns(path: Path, column: str | int | None, header: bool | None) -> _Columns:
    rows = list(islice(rows_of(path, delimiter_of(path)), _LOOKED_AT))
    if not rows:
        raise ValueError(f"{path} has no rows; give a file with labels")
    first = [text.strip() for text in rows[0]]
    if header is None:
        usual = {text.lower() for text in first} & {*_LABEL_NAMES, *_SPLIT_NAMES}
        header = isinstance(column, str) or bool(usual)
    names = first if header else None
    samples = rows[1:] if header else rows
    split = next((at for at in range(len(first)) if _tells_split(names, samples, at)), None)
    label = _label_place(names, rows[-1], column, split, path)
    return _Columns(label, None if split == label else split, header)


def _tells_split(names: Sequence[str] | None, rows: Sequence[Sequence[str]], at: int) -> bool:
    if names is not None and names[at].lower() in _SPLIT_NAMES:
        return True
    return bool(rows) and all(len(row) > at and split_named(row[at]) for row in rows)


def _label_place(
    names: Sequence[str] | None,
    example: Sequence[str],
    column: str | int | None,
    split: int | None,
    path: Path,
) -> int:
    width = len(example)
    if column is not None:
        return column_place(column, names, width, path)
    for usual in _LABEL_NAMES:
        for at, name in enumerate(names or ()):
            if name.lower() == usual:
                return at
    others = [at for at in range(width) if at != split]
    if len(others) == 1:
        return others[0]
    shown = (f"{(names or range(width))[at]} ({example[at].strip()[:20]!r})" for at in others[:10])
    raise ValueError(
        f"{path} has {width} columns and none is called label: {', '.join(shown)}; "
        "say with column (--column) which one holds the labels, by name or by place from 0"
    )


def _labels(path: Path, columns: _Columns, parts: array[int]) -> Iterator[str]:
    """The label of each row; the part it belongs to is appended to `parts`."""
    rows = islice(rows_of(path, delimiter_of(path)), int(columns.has_header), None)
    for row, fields in enumerate(rows):
        if len(fields) <= max(columns.label, columns.split or 0):
            raise ValueError(
                f"{path} has {len(fields)} columns in row {row}, too few to have a label in column "
                f"{columns.label}; mend that row"
            )
        label = fields[columns.label].strip()
        if not label:
            raise ValueError(
                f"{path} has no label in row {row}, column {columns.label}; leave that row out"
            )
        if columns.split is not None:
            parts.append(_part(fields[columns.split], path))
        yield label


def _part(name: str, path: Path) -> int:
    part = split_named(name)
    if part is None:
        raise ValueError(
            f"{path} has {name!r} in the column that tells the split, expected train, validation "
            "or test; correct it, or leave that column out"
        )
    return _PARTS.index(part)


def _by_part(labels: LabelCodes, parts: npt.NDArray[Any]) -> dict[str, LabelCodes]:
    if not len(parts):
        return {WHOLE: labels}
    found = {name: labels.only(parts == at) for at, name in enumerate(_PARTS)}
    return {name: part for name, part in found.items() if len(part.codes)}
