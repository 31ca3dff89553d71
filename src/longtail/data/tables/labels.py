"""Labels and class counts from whatever people keep them in.

| file | holds |
|---|---|
| .csv, .tsv (also .gz), .parquet | a column of labels, and where there is one a column of splits |
| the same | or a row a class, and a column "count" of its samples |
| .txt | a line a sample that ends in its label, as the lists of ImageNet-LT |
| .npy, .npz | an array of labels; in .npz also one a split, as `train_label` and `test_label` |
| .json | class counts: a list, an object from name to count, or one of those for each split |
| a folder | a subfolder a class, with or without folders for train, val and test above them |

Unless the caller says which column holds the labels, it is one with a usual name or the only one. A
column called "split", or in text one of nothing but "train", "test" and the like, tells the split.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from longtail.core.arrays import Numbers
from longtail.core.labels import MOST
from longtail.data.tables.arrays import load_npy, load_npz, npz_names
from longtail.data.tables.label_codes import (
    LabelCodes,
    LabelCounts,
    as_names,
)
from longtail.data.tables.label_tables import LabelTable
from longtail.data.tables.names import WHOLE, by_split, count_folders, split_named
from longtail.data.tables.text import lines_of, read_json, suffix_of

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST)]
_Counts: TypeAlias = list[_Count] | dict[str, _Count]

_ARRAY_NAMES = ("labels", "label", "y")
_CLASS_NAMES = ("classes", "class_names", "label_names")
_TABLES = (".csv", ".tsv", ".parquet")


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
    if suffix_of(source) in _TABLES:
        return LabelTable.open(source, column, header).counts()
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
            return LabelTable.open(path, column, header).labels(), None
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


def _label_arrays(names: Sequence[str], column: str | int | None, path: Path) -> dict[str, str]:
    """From the split to the name of its array."""
    if column in names:
        return {WHOLE: str(column)}
    parts = by_split(names if column is None else (), path, "arrays of labels", _split_of_array)
    single = next((name for name in _ARRAY_NAMES if name in names), None)
    if column is not None or not (parts or single):
        asked = "labels" if column is None else column
        raise ValueError(
            f"{path} has no array {asked!r}, only {', '.join(sorted(names)) or 'nothing'}; "
            "say with column (--column) which one holds the labels"
        )
    return parts or {WHOLE: str(single)}


def _split_of_array(name: str) -> str | None:
    words = name.lower().split("_")
    is_labels = len(words) == 2 and set(words) & set(_ARRAY_NAMES)
    return next(filter(None, map(split_named, words)), None) if is_labels else None


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
    stored = read_json(
        path,
        msgspec.json.Decoder(list[_Count] | dict[str, _Count | _Counts]),
        "JSON class counts: a list of whole numbers, an object from class name to number, or one "
        "of those under train, validation and test",
    )
    parts: dict[str, _Counts] = {}
    if isinstance(stored, dict):
        parts = {name: each for name, each in stored.items() if not isinstance(each, int)}
    if not parts:
        return {WHOLE: LabelCounts.of_counts(stored, str(path))}
    unknown = [name for name in stored if name not in parts or split_named(name) is None]
    if unknown:
        raise ValueError(
            f"{path} has counts under {unknown[0]!r}, expected train, validation or test; rename it"
        )
    names = by_split(parts, path, "lists of counts")
    return {split: LabelCounts.of_counts(parts[name], str(path)) for split, name in names.items()}
