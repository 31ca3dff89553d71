"""Labels and class counts from whatever people keep them in.

| file | holds |
|---|---|
| .csv, .tsv (also .gz), .parquet | a column of labels, and where there is one a column of splits |
| .txt | a line a sample that ends in its label, as the lists of ImageNet-LT |
| .npy, .npz | an array of labels; in .npz also one a split, as `train_label` and `test_label` |
| .json | class counts: a list, an object from name to count, or one of those for each split |
| a folder | a subfolder a class, with or without folders for train, val and test above them |
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from longtail.core.labels import MOST
from longtail.data.files.errors import check_is_file
from longtail.data.files.label_codes import LabelCodes
from longtail.data.files.text import lines_of, suffix_of
from longtail.data.label_files.arrays import npy_labels, npz_labels
from longtail.data.label_files.counts import LabelCounts
from longtail.data.label_files.folders import count_folders
from longtail.data.label_files.splits import WHOLE, split_named
from longtail.data.label_files.tables import parquet_table_labels, text_labels

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MOST)]
_Counts: TypeAlias = list[_Count] | dict[str, _Count]


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

    Args:
        path: A file of labels or counts, or a folder of class folders.
        column: The column of a table by name or place, or the array of an .npz.
        header: Whether the first line of a table names its columns; by default as `read_labels`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "train.txt"
    ...     _ = place.write_text("a/1.jpg 0\na/2.jpg 0\nc/1.jpg 2\n")
    ...     read_label_counts(place)["all"].counts
    {'0': 2, '2': 1}
    """
    place = Path(path)
    if place.is_dir():
        return {
            split: LabelCounts.of_names(found, str(place))
            for split, found in count_folders(place).items()
        }
    if suffix_of(place) == ".json":
        return _json_counts(place)
    parts, names = _labels_and_names(place, column, header)
    return {
        split: LabelCounts.of_codes(labels, names, str(place)) for split, labels in parts.items()
    }


def _labels_and_names(
    path: Path, column: str | int | None, header: bool | None
) -> tuple[dict[str, LabelCodes], tuple[str, ...] | None]:
    match suffix_of(path):
        case ".csv" | ".tsv":
            return text_labels(path, column, header), None
        case ".parquet":
            return parquet_table_labels(path, column), None
        case ".txt":
            return {WHOLE: LabelCodes.of_texts(_last_words(path))}, None
        case ".npy":
            return npy_labels(path), None
        case ".npz":
            return npz_labels(path, column)
    raise ValueError(
        f"{path} must end in .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .txt, .npy or .npz to be read "
        "as labels; counts alone may also be .json or a folder of class folders"
    )


def _last_words(path: Path) -> Iterator[str]:
    found = False
    for row, line in enumerate(lines_of(path)):
        words = line.split()
        if len(words) == 1 and "," in line:
            raise ValueError(
                f"{path} has {line[:40]!r} in row {row}, expected a path, a space and a label; "
                "if commas separate its fields, call it .csv"
            )
        if words:
            found = True
            yield words[-1]
    if not found:
        raise ValueError(f"{path} has no rows; give a file with labels")


def _json_counts(path: Path) -> dict[str, LabelCounts]:
    check_is_file(path)
    text = path.read_bytes()
    try:
        found = msgspec.json.decode(text, type=_Counts)
    except ValueError as error:  # of JSON, or of the text in it
        said = error
    else:
        return {WHOLE: _counted(found, path)}
    try:
        parts = msgspec.json.decode(text, type=dict[str, _Counts])
    except ValueError:
        raise ValueError(
            f"{path} must be JSON class counts: a list of whole numbers, an object from class name "
            f"to number, or one of those under train, validation and test ({said}); correct it"
        ) from said
    unknown = [name for name in parts if split_named(name) is None]
    if unknown:
        raise ValueError(
            f"{path} has counts under {unknown[0]!r}, expected train, validation or test; rename it"
        )
    return {str(split_named(name)): _counted(found, path) for name, found in parts.items()}


def _counted(found: list[int] | dict[str, int], path: Path) -> LabelCounts:
    by_label = found if isinstance(found, dict) else {str(i): n for i, n in enumerate(found)}
    if not any(by_label.values()):
        raise ValueError(f"{path} counts no samples at all; give the counts of a set that has some")
    ordered = LabelCounts.of_names(by_label, str(path))
    # An object lists its classes in an order that may be that of a model: it is kept.
    return ordered if ordered.numbered else LabelCounts(by_label)
