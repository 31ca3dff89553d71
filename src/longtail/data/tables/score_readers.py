"""What is in a file of scores, whatever its format: columns of a table, or named arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longtail.core import Prior
from longtail.core.arrays import Numbers, text_array
from longtail.core.blocks import slices
from longtail.core.score_checks import check_ids
from longtail.core.scores_file import FORMAT, LabelHeader
from longtail.core.tensor_file import StoredTensor, decode_header, open_tensor_file
from longtail.data.tables import arrays
from longtail.data.tables import layout as layouts
from longtail.data.tables.errors import ObjectsError, naming, reading
from longtail.data.tables.label_codes import LabelCodes, as_names
from longtail.data.tables.layout import ID_NAMES, LABEL_NAMES, Columns, Layout, Table
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.score_table import Contents, Kind, Matrix
from longtail.data.tables.text import TextTable

_CLASS_NAMES = ("classes", "class_names")


def read_npy(path: Path, kind: Kind, layout: Layout) -> Contents:
    """One array of shape (N, C)."""
    header = arrays.npy_header(path)
    shape = _check_shape(header.shape, path)
    return Contents(shape, _floating(header.dtype, path), partial(arrays.npy_blocks, path))


class _Arrays(NamedTuple):
    """What there is in a file of named arrays, and how it is read."""

    names: Sequence[str]
    header: Callable[[str], arrays.ArrayHeader | StoredTensor]
    load: Callable[[Iterable[str]], dict[str, Numbers]]
    blocks: Callable[[str, int], Iterator[Matrix]]


def read_npz(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named arrays: the scores, and where they are there labels, ids, classes and counts."""
    header, load = partial(arrays.npz_header, path), partial(arrays.load_npz, path)
    file = _Arrays(arrays.npz_names(path), header, load, partial(arrays.npz_blocks, path))
    return _of_arrays(file, kind, layout, path)


def read_safetensors(path: Path, kind: Kind, layout: Layout) -> Contents:
    """Named tensors; those of `Scores.save` have a header that says the rest."""
    metadata, tensors = open_tensor_file(path)

    def load(names: Iterable[str]) -> dict[str, Numbers]:
        with reading(path, "scores"):
            return {name: np.array(tensors[name].mapped()) for name in names}

    def blocks(name: str, rows: int) -> Iterator[Matrix]:
        with reading(path, "a safetensors file"):
            for at in slices(tensors[name].shape[0], 1, rows):
                yield tensors[name].rows(at)

    names = [name for name in tensors if name not in _CLASS_NAMES]  # which are no texts there
    file = _Arrays(names, tensors.__getitem__, load, blocks)
    if "longtail" not in metadata:
        # Nobody knows what a foreign file means by a tensor called carried.
        return _of_arrays(file, kind, layout, path)
    header = decode_header(metadata["longtail"], LabelHeader, path, FORMAT)
    if header.family != "softmax":
        raise ValueError(
            f'{path} has scores of yes/no labels, family="sigmoid", and not of one class a sample; '
            "read them with Scores.load"
        )
    contents = _of_arrays(file, kind, layout, path)
    small = load(tensors.keys() & {"carried", "carried_counts"})
    log, ids = small.get("carried"), contents.ids
    with reading(path, "scores that longtail wrote"):
        carried = None if log is None else Prior(log, small.get("carried_counts"))
        if header.ids is not None:
            ids = check_ids(header.ids, contents.shape[0])
    contents = replace(contents, classes=header.classes, split=header.split, by_longtail=True)
    return replace(contents, ids=ids, carried=carried)


def _of_arrays(file: _Arrays, kind: Kind, layout: Layout, path: Path) -> Contents:
    names = file.names
    chosen = layouts.scores_name(names, kind, layout.scores, path)
    labels = layouts.optional_name(names, LABEL_NAMES, layout.labels, path)
    ids = layouts.optional_name(names, ID_NAMES, layout.ids, path)
    classes = layouts.optional_name(names, _CLASS_NAMES, None, path)
    counts = "counts" if "counts" in names else None
    shape = _check_shape(file.header(chosen).shape, path)
    dtype = _floating(file.header(chosen).dtype, path)
    # Before any of them is unpacked.
    for name, number, wrong in (
        (labels, shape[0], "has {1} rows but {0!r} has {2} labels"),
        (ids, shape[0], "has {1} rows but {0!r} has {2} ids"),
        (classes, shape[1], "must name each of the {1} classes once, {0!r} has {2}"),
        (counts, shape[1], "must have {0!r} of all {1} classes, got {2}"),
    ):
        length = () if name is None else file.header(name).shape
        if len(length) == 1 and length[0] != number:
            raise ValueError(
                f"{path} {wrong.format(name, number, length[0])}; give one each, in the same order"
            )
    small = file.load(filter(None, (labels, ids, classes, counts)))
    return Contents(
        shape,
        dtype,
        partial(file.blocks, chosen),
        labels=LabelCodes.of_array(small[labels], f"{labels!r} of {path}") if labels else None,
        classes=as_names(small[classes], f"{classes!r} of {path}") if classes else None,
        ids=_ids(small[ids], shape[0], f"{ids!r} of {path}") if ids else None,
        counts=small.get("counts"),
        array=chosen,
    )


def read_parquet(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A row a sample: a column a class or one column of lists, and where there is one of labels."""
    table = ParquetTable.open(path)
    if not table.lists:
        columns = layouts.score_columns(table, layout)
        types = {name: table.dtype(name) for name in columns.classes or ()}
        for name, dtype in types.items():
            if dtype.kind not in "iuf":
                raise ValueError(
                    f"{path} has {dtype} in column {name!r}, where scores were "
                    "expected; say which columns hold no scores: --label-column, --skip"
                )
        common = np.result_type(*(_floating(dtype, path) for dtype in types.values()))
        return _of_columns(table, columns, common)
    chosen = layouts.scores_name(table.lists, kind, layout.scores, path)
    names = (
        layouts.optional_name(table.names, LABEL_NAMES, layout.labels, path),
        layouts.optional_name(table.names, ID_NAMES, layout.ids, path),
    )
    num_rows, labels, ids = _beside(
        table, *(None if name is None else table.names.index(name) for name in names)
    )
    shape = _check_shape((num_rows, table.length(chosen)), path)
    dtype, read = _floating(table.dtype(chosen), path), partial(table.list_numbers, chosen)
    return Contents(shape, dtype, read, labels=labels, ids=ids, array=chosen)


def read_text(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A line a sample, a column a class, and where there is one a column of labels."""
    table = TextTable.open(path, layout.delimiter, exact=True)
    if table.width < 2:
        raise ValueError(
            f"{path} has one column, its first line is {table.first[0][:40]!r}; expected fields "
            f"with {table.delimiter!r} between them; say what stands there with --delimiter "
            "(in Python Layout(delimiter=...))"
        )
    table = replace(table, has_header=layouts.has_header(table, layout))
    return _of_columns(table, layouts.score_columns(table, layout), np.dtype(np.float64))


def _of_columns(table: Table, columns: Columns, dtype: np.dtype[Any]) -> Contents:
    num_rows, labels, ids = _beside(table, columns.label, columns.ids)
    shape = _check_shape((num_rows, len(columns.scores)), table.path)
    return Contents(
        shape, dtype, partial(table.numbers, columns.scores), labels, columns.classes, ids
    )


def _beside(
    table: Table, label: int | None, ids: int | None
) -> tuple[int, LabelCodes | None, Numbers | None]:
    """How many rows there are, their labels and their ids."""
    num_rows, columns = table.labels(*(at for at in (label, ids) if at is not None))
    texts = None
    if ids is not None:
        values = columns[-1].values
        texts = text_array([values[code] for code in columns[-1].codes], f"ids of {table.path}")
    return num_rows, None if label is None else columns[0], texts


def _ids(stored: Numbers, num_rows: int, where: str) -> Numbers:
    with naming(where):
        texts = text_array(as_names(stored, where), "ids") if stored.dtype.kind == "S" else stored
        return check_ids(texts, num_rows)


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
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(
            f"{path} must have a row a sample and a column for each of two or more classes, "
            f"got shape {tuple(shape)}; of a binary classifier give both columns"
        )
    if not shape[0]:
        raise ValueError(f"{path} has no rows; make it again from at least one sample")
    return shape[0], shape[1]
