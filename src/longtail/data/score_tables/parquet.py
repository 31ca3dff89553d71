"""Scores in .parquet files, by row groups: a column a class, or one column of lists."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.files.errors import reading
from longtail.data.files.parquet import open_parquet, parquet_labels
from longtail.data.score_tables.columns import choose_columns
from longtail.data.score_tables.contents import (
    LABEL_NAMES,
    Contents,
    Kind,
    Layout,
    Matrix,
    check_shape,
    floating,
    optional_name,
    scores_name,
)
from longtail.data.score_tables.row_index import (
    is_index_name,
    is_row_index,
    pandas_index,
    warn_of_index,
)

_LOOKED_AT = 1000  # rows that tell whether the first column is an index


def read_parquet(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A row a sample, and where there is one a column of labels."""
    file = open_parquet(path)
    schema = file.schema_arrow
    types = dict(zip(schema.names, schema.types, strict=True))
    lists = [name for name in types if hasattr(types[name], "value_field")]
    return _lists(file, lists, kind, layout, path) if lists else _columns(file, layout, path)


def _lists(file: Any, lists: Sequence[str], kind: Kind, layout: Layout, path: Path) -> Contents:
    chosen = scores_name(lists, kind, layout.scores, path)
    names = file.schema_arrow.names
    label = optional_name(names, LABEL_NAMES, layout.labels, path)
    num_rows = file.metadata.num_rows
    first = next((batch.column(0)[0] for batch in file.iter_batches(1, columns=[chosen])), ())
    shape = check_shape((num_rows, len(first)), path)
    stored = file.schema_arrow.field(chosen).type.value_type.to_pandas_dtype()

    def read(rows: int) -> Iterator[Matrix]:
        start = 0
        for batch in _batches(path, rows, [chosen]):
            lengths = np.asarray(batch.column(0).value_lengths().fill_null(0))
            if (lengths != shape[1]).any():
                row = int((lengths != shape[1]).argmax())
                raise ValueError(
                    f"{path} has {shape[1]} scores in its first row, but {lengths[row]} in row "
                    f"{start + row}; mend that row"
                )
            values = batch.column(0).flatten().to_numpy(zero_copy_only=False)
            yield values.reshape(len(lengths), shape[1])
            start += len(lengths)

    return Contents(
        shape,
        floating(np.dtype(stored), path),
        read,
        labels=None if label is None else parquet_labels(file, label, path),
        array=chosen,
    )


def _columns(file: Any, layout: Layout, path: Path) -> Contents:
    names = file.schema_arrow.names
    layout = _without_index(file, layout, path)
    columns = choose_columns(names, len(names), layout, path)
    chosen = list(columns.classes or ())
    shape = check_shape((file.metadata.num_rows, len(chosen)), path)
    stored = []
    for name in chosen:
        dtype = np.dtype(file.schema_arrow.field(name).type.to_pandas_dtype())
        if dtype.kind not in "iuf":
            raise ValueError(
                f"{path} has {dtype} in column {name!r}, where scores were expected; "
                "say which columns hold no scores: --label-column, --skip"
            )
        stored.append(floating(dtype, path))

    def read(rows: int) -> Iterator[Matrix]:
        for batch in _batches(path, rows, chosen):
            numbers = [batch.column(name).to_numpy(zero_copy_only=False) for name in chosen]
            yield np.column_stack(numbers)

    label = None if columns.label is None else names[columns.label]
    return Contents(
        shape,
        np.result_type(*stored),
        read,
        labels=None if label is None else parquet_labels(file, label, path),
        classes=columns.classes,
    )


def _without_index(file: Any, layout: Layout, path: Path) -> Layout:
    """The same, with the index of a data frame skipped."""
    schema, wanted = file.schema_arrow, {layout.labels, *layout.skip, *LABEL_NAMES}
    with reading(path, "a parquet file"):
        found = [
            name for name in pandas_index(schema.pandas_metadata, wanted) if name in schema.names
        ]
        # Other libraries keep the name that pandas gave it, but not what pandas said of it.
        found += [name for name in schema.names if is_index_name(name) and name not in found]
        first = schema.names[0]
        if first not in (*found, *wanted) and 0 not in wanted:
            values = next(file.iter_batches(_LOOKED_AT, columns=[first]), None)
            texts = [] if values is None else map(str, values.column(0).to_pylist())
            found += [first] if is_row_index(first, texts) else []
    for name in found:
        warn_of_index(name, path)
    return replace(layout, skip=(*layout.skip, *found))


def _batches(path: Path, rows: int, columns: Sequence[str]) -> Iterator[Any]:
    file = open_parquet(path)
    with reading(path, "a parquet file"):
        yield from file.iter_batches(rows, columns=columns)
