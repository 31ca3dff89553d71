"""The door: one function opens every format and checks what the file and the caller say."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from longtail.core.arrays import ArrayLike, Indices
from longtail.core.labels import check_counts
from longtail.core.numbers import check_choice
from longtail.data.tables import score_readers
from longtail.data.tables.errors import check_is_file, naming
from longtail.data.tables.label_codes import LabelCodes
from longtail.data.tables.labels import read_labels
from longtail.data.tables.layout import Layout
from longtail.data.tables.names import read_class_names
from longtail.data.tables.score_table import Contents, Kind, ScoreTable
from longtail.data.tables.text import suffix_of

Place: TypeAlias = str | os.PathLike[str]

_READERS: Mapping[str, Callable[[Path, Kind, Layout], Contents]] = {
    ".npy": score_readers.read_npy,
    ".npz": score_readers.read_npz,
    ".safetensors": score_readers.read_safetensors,
    ".csv": score_readers.read_text,
    ".tsv": score_readers.read_text,
    ".parquet": score_readers.read_parquet,
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
        kind: What the numbers are. It is not guessed.
        labels: The true classes, as indices or names, or a file that holds them; by default what
            the file of scores has, as for `classes`.
        classes: The names of the classes in the order of the columns, or a file that lists them.
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
    source = Path(path)
    check_choice(kind, Kind, "kind")
    reader = _READERS.get(suffix_of(source))
    if reader is None or (source.suffix.lower() == ".gz" and reader is not score_readers.read_text):
        raise ValueError(
            f"{source} must end in {', '.join(_READERS)}, .csv.gz or .tsv.gz; convert it to one"
        )
    check_is_file(source)
    asked = layout or Layout()
    elsewhere = isinstance(labels, str | os.PathLike)
    contents = reader(source, kind, replace(asked, labels=None) if elsewhere else asked)
    num_classes, counts = contents.shape[1], contents.counts
    if contents.classes is None and classes is None and len(usual_classes or ()) == num_classes:
        classes = usual_classes
    if counts is not None:
        with naming(f"'counts' of {source}"):
            counts = check_counts(counts, num_classes)
    names = _names(classes, contents, source)
    indices = _indices(labels, asked.labels, contents, names, source)
    facts = names, counts, contents.carried, contents.split, contents.ids
    table = ScoreTable(source, kind, contents, indices, *facts)
    table.check_kind()
    return table


def _names(
    classes: Sequence[str] | Place | None, contents: Contents, path: Path
) -> tuple[str, ...] | None:
    if classes is None:
        names, source = contents.classes, str(path)
    elif isinstance(classes, str | os.PathLike):
        names, source = read_class_names(Path(classes)), os.fspath(classes)
    else:
        names, source = tuple(map(str, classes)), "classes"
    if names is None:
        return None
    num_classes = contents.shape[1]
    if len(names) != num_classes or len(set(names)) != num_classes:
        raise ValueError(
            f"{source} must name each of the {num_classes} classes of {path} once, "
            f"got {len(names)} names, {len(set(names))} of them different; correct the list"
        )
    if contents.classes and names != contents.classes and set(names) == set(contents.classes):
        raise ValueError(
            f"{source} lists the classes of {path} in another order than its columns "
            f"({', '.join(contents.classes[:3])}, ...); leave the names out, or put the columns so"
        )
    return names


def _indices(
    labels: ArrayLike | Sequence[str] | Place | None,
    column: str | int | None,
    contents: Contents,
    names: tuple[str, ...] | None,
    path: Path,
) -> Indices | None:
    if labels is None:
        codes, source = contents.labels, f"the labels of {path}"
    elif isinstance(labels, str | os.PathLike):
        parts, source = read_labels(labels, column), f"{labels}"
        if len(parts) > 1:
            raise ValueError(
                f"{source} has labels of several splits ({', '.join(parts)}); give a file of those "
                "that belong to the scores, or name the array"
            )
        (codes,) = parts.values()
    else:
        codes, source = LabelCodes.of_array(np.asarray(labels), "labels"), "labels"
    if codes is None:
        return None
    rows, num_classes = contents.shape
    if len(codes.codes) != rows:
        raise ValueError(
            f"{path} has {rows} rows but {source} has {len(codes.codes)} labels; "
            "give one label a row, in the same order"
        )
    return codes.as_indices(num_classes, names, source)
