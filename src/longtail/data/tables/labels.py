"""Labels and class counts from whatever people keep them in.

| file | holds |
|---|---|
| .csv, .tsv (also .gz), .parquet | a column of labels, and where there is one a column of splits |
| .txt | a line a sample that ends in its label, as the lists of ImageNet-LT |
| .npy, .npz | an array of labels; in .npz also one a split, as `train_label` and `test_label` |
| .json | class counts: a list, an object from name to count, or one of those for each split |
| a folder | a subfolder a class, with or without folders for train, val and test above them |

Unless the caller says which column holds the labels, it is one with a usual name or the only one. A
column called "split", or in text one of nothing but "train", "test" and the like, tells the split.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.labels import MOST
from longtail.data.tables.arrays import load_npy, load_npz, npz_names
from longtail.data.tables.errors import check_is_file
from longtail.data.tables.label_codes import LabelCodes, LabelCounts, as_names
from longtail.data.tables.layout import Table, column_place
from longtail.data.tables.names import WHOLE, count_folders, split_named
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.text import TextTable, lines_of, suffix_of

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST)]
_Counts: TypeAlias = list[_Count] | dict[str, _Count]

_LABEL_NAMES = ("label", "labels", "class", "class_name", "category", "target", "y")
_SPLIT_NAMES = ("split", "subset", "partition")
_ARRAY_NAMES = ("labels", "label", "y")
_CLASS_NAMES = ("classes", "class_names", "label_names")
_LOOKED_AT = 1000  # rows that decide which column tells the split


def read_labels(
    path: str | os.PathLike[str], column: str | int | None = None, header: bool | None = None
) -> dict[str, LabelCodes]:
    """The label of each sample in a file, by split; under "all" if it tells none.

    Args:
        path: A file of labels; folders and JSON files hold only counts.
        column: The column of a table by name or place, or the array of an .npz.
        header: Whether the first line of a table names its columns. By default it does if a column
            is asked for by name, or one is called "label", "split" or the like.
    """
    return _labels_and_names(Path(path), column, header)[0]


def read_label_counts(
    path: str | os.PathLike[str], column: str | int | None = None, header: bool | None = None
) -> dict[str, LabelCounts]:
    r"""How many samples each label has, by split; under "all" if there are no splits.

    The path may also be a file of counts, or a folder of class folders.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "train.txt"
    ...     _ = place.write_text("a/1.jpg 0\na/2.jpg 0\nc/1.jpg 2\n")
    ...     read_label_counts(place)["all"].counts
    {'0': 2, '2': 1}
    """
    source = Path(path)
    if source.is_dir():
        return {
            split: LabelCounts.of_names(counts, str(source))
            for split, counts in count_folders(source).items()
        }
    if suffix_of(source) == ".json":
        return _json_counts(source)
    parts, names = _labels_and_names(source, column, header)
    return {
        split: LabelCounts.of_codes(labels, names, str(source)) for split, labels in parts.items()
    }


def npz_labels(
    path: Path, column: str | int | None = None
) -> tuple[dict[str, LabelCodes], tuple[str, ...] | None]:
    """The labels of each split, or all of them under "all"; and the class names if there are any.

    Without a `column` the arrays are those called as `train_label` and `y_test`, or "labels".
    """
    names = npz_names(path)
    chosen = _label_arrays(names, column, path)
    usual = (*(f"{name.removesuffix('s')}_names" for name in chosen.values()), *_CLASS_NAMES)
    called = next((name for name in usual if name in names), None)
    arrays = load_npz(path, [*chosen.values(), *filter(None, [called])])
    classes = None if called is None else as_names(arrays[called], f"{called!r} of {path}")
    labels = {
        split: _of_array(arrays[name], f"{name!r} of {path}") for split, name in chosen.items()
    }
    return labels, classes


def _labels_and_names(
    path: Path, column: str | int | None, header: bool | None
) -> tuple[dict[str, LabelCodes], tuple[str, ...] | None]:
    match suffix_of(path):
        case ".csv" | ".tsv" | ".parquet":
            return _table_labels(path, column, header), None
        case ".txt":
            return {WHOLE: LabelCodes.of_texts(_last_words(path))}, None
        case ".npy":
            return {WHOLE: _of_array(load_npy(path), str(path))}, None
        case ".npz":
            return npz_labels(path, column)
    raise ValueError(
        f"{path} must end in .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .txt, .npy or .npz to be read "
        "as labels; counts alone may also be .json or a folder of class folders"
    )


def _table_labels(
    path: Path, column: str | int | None, header: bool | None
) -> dict[str, LabelCodes]:
    table: Table
    if suffix_of(path) == ".parquet":
        table = ParquetTable.open(path)
        samples, example = [], list(table.names)
    else:
        plain = TextTable.open(path)
        samples = list(islice(plain.rows(), _LOOKED_AT))
        if header is None:
            usual = {text.lower() for text in plain.first} & {*_LABEL_NAMES, *_SPLIT_NAMES}
            header = isinstance(column, str) or bool(usual)
        table, example, samples = replace(plain, has_header=header), samples[-1], samples[header:]
    split = next((at for at in range(table.width) if _tells_split(table, samples, at)), None)
    label = _label_place(table, example, column, split)
    others = [] if split is None or split == label else [split]
    num_rows, (labels, *splits) = table.labels(label, *others)
    if not num_rows:
        raise ValueError(f"{path} has no rows under its header; give a file with labels")
    if "" in labels.values:
        row = int((labels.codes == labels.values.index("")).argmax())
        raise ValueError(f"{path} has no label in row {row}, column {label}; leave that row out")
    return _by_split(labels, splits[0], path) if splits else {WHOLE: labels}


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
        return lowered.index(called)
    others = [at for at in range(width) if at != split]
    if len(others) == 1:
        return others[0]
    shown = (f"{(names or range(width))[at]} ({example[at].strip()[:20]!r})" for at in others[:10])
    raise ValueError(
        f"{table.path} has {width} columns and none is called label: {', '.join(shown)}; "
        "say with column (--column) which one holds the labels, by name or by place from 0"
    )


def _by_split(labels: LabelCodes, splits: LabelCodes, path: Path) -> dict[str, LabelCodes]:
    parts = [split_named(value) for value in splits.values]
    if None in parts:
        raise ValueError(
            f"{path} has {splits.values[parts.index(None)]!r} in the column that tells the split, "
            "expected train, validation or test; correct it, or leave that column out"
        )
    return {
        split: labels.only(np.array([part == split for part in parts])[splits.codes])
        for split in ("train", "validation", "test")
        if split in parts
    }


def _label_arrays(names: Sequence[str], column: str | int | None, path: Path) -> dict[str, str]:
    """From the split to the name of its array."""
    if column in names:
        return {WHOLE: str(column)}
    by_split: dict[str, str] = {}
    for name in names if column is None else ():
        words = name.lower().split("_")
        split = next(filter(None, map(split_named, words)), None)
        if len(words) == 2 and split and set(words) & set(_ARRAY_NAMES):
            by_split.setdefault(split, name)
    single = next((name for name in _ARRAY_NAMES if name in names), None)
    if column is not None or not (by_split or single):
        asked = "labels" if column is None else column
        raise ValueError(
            f"{path} has no array {asked!r}, only {', '.join(sorted(names)) or 'nothing'}; "
            "say with column (--column) which one holds the labels"
        )
    return by_split or {WHOLE: str(single)}


def _of_array(stored: Numbers, where: str) -> LabelCodes:
    if not stored.size:
        raise ValueError(f"{where} has no labels in it; give one a sample")
    return LabelCodes.of_array(stored, where)


def _last_words(path: Path) -> Iterator[str]:
    is_empty = True
    for row, line in enumerate(lines_of(path)):
        words = line.split()
        if len(words) == 1 and "," in line:
            raise ValueError(
                f"{path} has {line[:40]!r} in row {row}, expected a path, a space and a label; "
                "if commas separate its fields, call it .csv"
            )
        if words:
            is_empty = False
            yield words[-1]
    if is_empty:
        raise ValueError(f"{path} has no rows; give a file with labels")


def _json_counts(path: Path) -> dict[str, LabelCounts]:
    check_is_file(path)
    text = path.read_bytes()
    try:
        counts = msgspec.json.decode(text, type=_Counts)
    except ValueError as error:  # of JSON, or of the text in it
        reason = error
    else:
        return {WHOLE: _ordered(counts, path)}
    try:
        parts = msgspec.json.decode(text, type=dict[str, _Counts])
    except ValueError:
        raise ValueError(
            f"{path} must be JSON class counts: a list of whole numbers, an object from class name "
            f"to number, or one of those under train, validation and test ({reason}); correct it"
        ) from reason
    unknown = [name for name in parts if split_named(name) is None]
    if unknown:
        raise ValueError(
            f"{path} has counts under {unknown[0]!r}, expected train, validation or test; rename it"
        )
    return {str(split_named(name)): _ordered(counts, path) for name, counts in parts.items()}


def _ordered(counts: list[int] | dict[str, int], path: Path) -> LabelCounts:
    by_label = counts if isinstance(counts, dict) else {str(i): n for i, n in enumerate(counts)}
    if not any(by_label.values()):
        raise ValueError(f"{path} counts no samples at all; give the counts of a set that has some")
    ordered = LabelCounts.of_names(by_label, str(path))
    # An object lists its classes in an order that may be that of a model: it is kept.
    return ordered if ordered.numbered else LabelCounts(by_label)
