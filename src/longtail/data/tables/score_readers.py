"""What is in a file of scores, whatever its format: columns of a table, or named arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.core.blocks import slices
from longtail.core.score_checks import check_ids
from longtail.core.scores_file import decode_header
from longtail.core.tensor_file import open_tensor_file
from longtail.data.tables.arrays import (
    load_npz,
    npy_blocks,
    npy_header,
    npz_blocks,
    npz_header,
    npz_names,
)
from longtail.data.tables.columns import (
    ID_NAMES,
    LABEL_NAMES,
    Columns,
    Table,
    column_place,
    score_columns,
)
from longtail.data.tables.errors import ObjectsError, naming, reading
from longtail.data.tables.label_codes import LabelCodes, as_names
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.score_table import Contents, Kind, Matrix
from longtail.data.tables.text import TextTable, is_number

# What an array of scores may be called if nobody said: its kind, or what says nothing of it.
_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "logits": ("logits", "scores", "arr_0"),
    "probs": ("probs", "probabilities", "scores", "arr_0"),
}
_CLASS_NAMES = ("classes", "class_names")


@dataclass(frozen=True)
class Layout:
    """Where things are in a file of scores, as far as it does not say so itself.

    Attributes:
        scores: The array of .npz or .safetensors, or the list column of .parquet, that holds the
            scores. By default the one named "logits" or "probs".
        labels: The array, or the column by its name or its place counted from 0, that holds the
            labels. By default "labels" or "label".
        ids: The array or column of what tells the samples apart. By default "ids" or "id".
        skip: Columns that are none of these, by name or place.
        header: Whether the first line of text names the columns. By default it does if a field
            of it is no number.
        delimiter: Between the fields of text. By default a tab in .tsv, else a comma.
    """

    scores: str | None = None
    labels: str | int | None = None
    ids: str | int | None = None
    skip: Sequence[str | int] = ()
    header: bool | None = None
    delimiter: str | None = None


def read_npy(path: Path, kind: Kind, layout: Layout) -> Contents:
    """One array of shape (N, C)."""
    header = npy_header(path)
    shape = _check_shape(header.shape, path)
    return Contents(shape, _floating(header.dtype, path), partial(npy_blocks, path))


def read_npz(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named arrays: the scores, and where they are there labels, counts and classes."""
    names = npz_names(path)
    chosen = _scores_name(names, kind, layout.scores, path)
    labels = _optional_name(names, LABEL_NAMES, layout.labels, path)
    classes = _optional_name(names, _CLASS_NAMES, None, path)
    ids = _optional_name(names, ID_NAMES, layout.ids, path)
    counts = "counts" if "counts" in names else None
    header = npz_header(path, chosen)
    shape = _check_shape(header.shape, path)
    dtype = _floating(header.dtype, path)
    # Before any of them is unpacked.
    for name, number, wrong in (
        (labels, shape[0], "has {1} rows but {0!r} has {2} labels"),
        (ids, shape[0], "has {1} rows but {0!r} has {2} ids"),
        (classes, shape[1], "must name each of the {1} classes once, {0!r} has {2}"),
        (counts, shape[1], "must have {0!r} of all {1} classes, got {2}"),
    ):
        length = () if name is None else npz_header(path, name).shape
        if len(length) == 1 and length[0] != number:
            raise ValueError(
                f"{path} {wrong.format(name, number, length[0])}; give one each, in the same order"
            )
    small = load_npz(path, filter(None, (labels, classes, ids, counts)))
    return Contents(
        shape,
        dtype,
        partial(npz_blocks, path, chosen),
        labels=LabelCodes.of_array(small[labels], f"{labels!r} of {path}") if labels else None,
        classes=as_names(small[classes], f"{classes!r} of {path}") if classes else None,
        ids=_ids(small[ids], shape[0], f"{ids!r} of {path}") if ids else None,
        counts=small.get("counts"),
        array=chosen,
    )


def read_safetensors(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named tensors, those of `Scores.save` or others: scores, labels, counts, what is carried."""
    metadata, tensors = open_tensor_file(path)
    chosen = _scores_name(list(tensors), kind, layout.scores, path)
    labels = _optional_name(list(tensors), LABEL_NAMES, layout.labels, path)
    shape = _check_shape(tensors[chosen].shape, path)
    header = decode_header(metadata["longtail"], path) if "longtail" in metadata else None
    ids = _optional_name(list(tensors), ID_NAMES, layout.ids, path)
    wanted = {labels, ids, "counts", *(("carried", "carried_counts") if header else ())}
    with reading(path, "scores"):
        small = {name: np.array(tensors[name].mapped()) for name in wanted & tensors.keys()}
        # Of a foreign file nobody knows what it means by a tensor of that name.
        log = small.get("carried")
        carried = None if log is None else Prior(log, small.get("carried_counts"))
        known = small.get(ids or "")
        if known is None and header is not None and header.ids is not None:
            known = np.array(header.ids)

    def read(rows: int) -> Iterator[Matrix]:
        with reading(path, "a safetensors file"):
            for at in slices(shape[0], 1, rows):
                yield tensors[chosen].rows(at)

    return Contents(
        shape,
        _floating(tensors[chosen].dtype, path),
        read,
        labels=LabelCodes.of_array(small[labels], f"{labels!r} of {path}") if labels else None,
        classes=header.classes if header else None,
        ids=None if known is None else _ids(known, shape[0], f"the ids of {path}"),
        counts=small.get("counts"),
        carried=carried,
        split=header.split if header else None,
        array=chosen,
        by_longtail=header is not None,
    )


def read_parquet(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A row a sample: a column a class or one column of lists, and where there is one of labels."""
    table = ParquetTable.open(path)
    if not table.lists:
        columns = score_columns(table, layout.labels, layout.ids, layout.skip)
        for name in columns.classes or ():
            if table.dtype(name).kind not in "iuf":
                raise ValueError(
                    f"{path} has {table.dtype(name)} in column {name!r}, where scores were "
                    "expected; say which columns hold no scores: --label-column, --skip"
                )
        types = [_floating(table.dtype(name), path) for name in columns.classes or ()]
        return _of_columns(table, columns, np.result_type(*types))
    chosen = _scores_name(table.lists, kind, layout.scores, path)
    names = (
        _optional_name(table.names, LABEL_NAMES, layout.labels, path),
        _optional_name(table.names, ID_NAMES, layout.ids, path),
    )
    places = (None if name is None else table.names.index(name) for name in names)
    num_rows, labels, ids = _beside(table, *places)
    return Contents(
        _check_shape((num_rows, table.length(chosen)), path),
        _floating(table.dtype(chosen), path),
        partial(table.list_numbers, chosen),
        labels=labels,
        ids=ids,
        array=chosen,
    )


def read_text(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A line a sample, a column a class, and where there is one a column of labels."""
    table = TextTable.open(path, layout.delimiter, exact=True)
    if table.width < 2:
        raise ValueError(
            f"{path} has one column, its first line is {table.first[0][:40]!r}; expected fields "
            f"with {table.delimiter!r} between them; say what stands there with --delimiter "
            "(in Python Layout(delimiter=...))"
        )
    has_header = _has_header(table, layout) if layout.header is None else layout.header
    table = replace(table, has_header=has_header)
    columns = score_columns(table, layout.labels, layout.ids, layout.skip)
    return _of_columns(table, columns, np.dtype(np.float64))


def _of_columns(table: Table, columns: Columns, dtype: np.dtype[Any]) -> Contents:
    num_rows, labels, ids = _beside(table, columns.label, columns.ids)
    return Contents(
        _check_shape((num_rows, len(columns.scores)), table.path),
        dtype,
        partial(table.numbers, columns.scores),
        labels=labels,
        classes=columns.classes,
        ids=ids,
    )


def _beside(
    table: Table, label: int | None, ids: int | None
) -> tuple[int, LabelCodes | None, npt.NDArray[Any] | None]:
    """How many rows there are, their labels and their ids."""
    num_rows, columns = table.labels(*(place for place in (label, ids) if place is not None))
    known = None if ids is None else np.array(columns[-1].values)[columns[-1].codes]
    return num_rows, None if label is None else columns[0], known


def _has_header(table: TextTable, layout: Layout) -> bool:
    """Whether the first line names the columns; a ValueError if it could be either."""
    columns = [*layout.skip, *([] if layout.labels is None else [layout.labels])]
    if any(isinstance(column, str) for column in columns):
        return True
    aside = {column_place(column, None, table.width, table.path) for column in columns}
    scores = [text for at, text in enumerate(table.first) if at not in aside]
    if not all(map(is_number, scores)):
        return True
    if scores == [str(index) for index in range(len(scores))]:
        raise ValueError(
            f"the first line of {table.path} reads {', '.join(scores[:4])}, which may be names of "
            "columns or scores; say --header or --no-header"
        )
    return False


def _ids(stored: npt.NDArray[Any], num_rows: int, where: str) -> npt.NDArray[Any]:
    with naming(where):
        return check_ids(
            np.array(as_names(stored, where)) if stored.dtype.kind == "S" else stored, num_rows
        )


def _floating(dtype: np.dtype[Any], path: Path) -> np.dtype[Any]:
    """The type that numbers of a stored type are read as: float16 to float64, the machine's own."""
    if dtype.hasobject:
        raise ObjectsError(
            f"{path} holds its scores as Python objects, which only a pickle could read; save them "
            "as numbers: numpy.array(scores, dtype=float)"
        )
    if dtype.kind not in "iuf":
        raise ValueError(f"{path} must hold scores as real numbers, got {dtype}; convert them")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.kind != "f" and dtype.itemsize <= 2 else np.float64)


def _check_shape(shape: Sequence[int], path: Path) -> tuple[int, int]:
    """The shape of a table of scores, or a ValueError."""
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(
            f"{path} must have a row a sample and a column for each of two or more classes, "
            f"got shape {tuple(shape)}; of a binary classifier give both columns"
        )
    if not shape[0]:
        raise ValueError(f"{path} has no rows; make it again from at least one sample")
    return shape[0], shape[1]


def _scores_name(names: Sequence[str], kind: Kind, asked: str | None, path: Path) -> str:
    """Which of the named arrays holds the scores, or a ValueError that lists them."""
    if asked is not None:
        return str(_optional_name(names, (), asked, path))
    chosen = next((name for name in _NAMES[kind] if name in names), None)
    if chosen is not None:
        return chosen
    other: Kind = "probs" if kind == "logits" else "logits"
    contradicted = next((name for name in _NAMES[other] if name in names), None)
    if contradicted is not None:
        raise ValueError(
            f"{path} was said to hold {kind}, but its array is called {contradicted!r}; "
            f"say --kind {other}, or name the array with --array {contradicted} if it is one of "
            f"{kind} after all"
        )
    raise ValueError(
        f"{path} has no array {kind!r}, only {', '.join(sorted(names)) or 'nothing'}; say which "
        f"holds the {kind} with --array (in Python Layout(scores=...))"
    )


def _optional_name(
    names: Sequence[str], usual: Sequence[str], asked: str | int | None, path: Path
) -> str | None:
    """The name that was asked for, or the usual one that is there, or None."""
    if asked is None:
        return next((name for name in usual if name in names), None)
    if asked not in names:
        listed = ", ".join(sorted(names)) or "nothing"
        raise ValueError(f"{path} has no array {asked!r}, only {listed}; name one of these")
    return str(asked)
