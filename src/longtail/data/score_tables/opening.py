"""The door: one function opens every format and checks what the file and the caller say."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import ArrayLike
from longtail.core.tensors import count_tensor
from longtail.data.files.class_names import read_class_names
from longtail.data.files.errors import check_is_file
from longtail.data.files.label_codes import LabelCodes
from longtail.data.files.text import suffix_of
from longtail.data.label_files.reading import read_labels
from longtail.data.score_tables.arrays import read_npy, read_npz
from longtail.data.score_tables.contents import Contents, Kind, Layout
from longtail.data.score_tables.parquet import read_parquet
from longtail.data.score_tables.safetensors import read_safetensors
from longtail.data.score_tables.table import ScoreTable
from longtail.data.score_tables.text import read_text

Place: TypeAlias = str | os.PathLike[str]

_READERS: Mapping[str, Callable[[Path, Kind, Layout], Contents]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".csv": read_text,
    ".tsv": read_text,
    ".parquet": read_parquet,
}


def open_score_table(
    path: Place,
    kind: Kind,
    labels: ArrayLike | Sequence[str] | Place | None = None,
    classes: Sequence[str] | Place | None = None,
    layout: Layout | None = None,
    usual_classes: Sequence[str] | None = None,
) -> ScoreTable:
    r"""Open a file of scores to be read a block of rows at a time.

    Args:
        path: An .npz, .npy, .safetensors, .csv, .tsv (both also .gz) or .parquet file.
        kind: "logits" or "probs": what the numbers are. It is not guessed.
        labels: The true classes, as indices or names, or a file that holds them; by default what
            the file of scores has.
        classes: The names of the classes in the order of the columns, or a file that lists them;
            by default what the file has.
        layout: Where things are in the file, if it does not say so itself. Its `labels` are a
            column or array of the file of labels, if there is one.
        usual_classes: The names of the classes where neither `classes` nor the file says them,
            such as those of other scores of the same model.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "scores.csv"
    ...     _ = place.write_text("cat,fox,label\n2.0,1.0,fox\n0.5,0.0,cat\n")
    ...     table = open_score_table(place, "logits")
    ...     print(table.num_rows, table.classes, table.labels)
    ...     print(table.as_scores(carried=[90, 10]).under([1, 1]).predict())
    2 ('cat', 'fox') [1 0]
    [1 1]
    """
    place = Path(path)
    if kind not in get_args(Kind):
        raise ValueError(f'kind must be "logits" or "probs", what the file holds, got {kind!r}')
    reader = _READERS.get(suffix_of(place))
    if reader is None or (place.suffix.lower() == ".gz" and reader is not read_text):
        raise ValueError(
            f"{place} must end in {', '.join(_READERS)}, .csv.gz or .tsv.gz; convert it to one"
        )
    check_is_file(place)
    asked = layout or Layout()
    elsewhere = isinstance(labels, str | os.PathLike)
    found = reader(place, kind, replace(asked, labels=None) if elsewhere else asked)
    if found.classes is None and classes is None and len(usual_classes or ()) == found.shape[1]:
        classes = usual_classes
    names = _names(classes, found, place)
    table = ScoreTable(
        path=place,
        kind=kind,
        labels=_indices(labels, asked.labels, found, names, place),
        classes=names,
        counts=None if found.counts is None else _counts(found, place),
        carried=found.carried,
        split=found.split,
        contents=found,
    )
    table.check_kind()
    return table


def _names(
    given: Sequence[str] | Place | None, found: Contents, path: Path
) -> tuple[str, ...] | None:
    if given is None:
        names, source = found.classes, str(path)
    elif isinstance(given, str | os.PathLike):
        names, source = read_class_names(Path(given)), os.fspath(given)
    else:
        names, source = tuple(map(str, given)), "classes"
    if names is None:
        return None
    num_classes = found.shape[1]
    if len(names) != num_classes or len(set(names)) != num_classes:
        raise ValueError(
            f"{source} must name each of the {num_classes} classes of {path} once, "
            f"got {len(names)} names, {len(set(names))} of them different; correct the list"
        )
    if found.classes and names != found.classes and set(names) == set(found.classes):
        raise ValueError(
            f"{source} lists the classes of {path} in another order than its columns "
            f"({', '.join(found.classes[:3])}, ...); leave the names out, or put the columns so"
        )
    return names


def _indices(
    given: ArrayLike | Sequence[str] | Place | None,
    column: str | int | None,
    found: Contents,
    names: tuple[str, ...] | None,
    path: Path,
) -> npt.NDArray[np.int64] | None:
    if given is None:
        labels, source = found.labels, f"the labels of {path}"
    elif isinstance(given, str | os.PathLike):
        labels, source = _only(read_labels(given, column), given), f"{given}"
    else:
        labels, source = LabelCodes.of_array(np.asarray(given), "labels"), "labels"
    if labels is None:
        return None
    rows, num_classes = found.shape
    if len(labels.codes) != rows:
        raise ValueError(
            f"{path} has {rows} rows but {source} has {len(labels.codes)} labels; "
            "give one label a row, in the same order"
        )
    return labels.as_indices(num_classes, names, source)


def _only(parts: Mapping[str, LabelCodes], source: Place) -> LabelCodes:
    if len(parts) > 1:
        raise ValueError(
            f"{source} has labels of several splits ({', '.join(parts)}); give a file of those "
            "that belong to the scores, or name the array"
        )
    return next(iter(parts.values()))


def _counts(found: Contents, path: Path) -> npt.NDArray[np.int64]:
    try:
        return count_tensor(np.asarray(found.counts), found.shape[1]).numpy()
    except ValueError as error:
        raise ValueError(f"'counts' of {path}: {error}") from error
