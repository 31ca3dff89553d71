"""Parquet tables, read by row groups with pyarrow, which comes with the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.memory import check_memory
from longtail.data.tables.errors import check_is_file, reading
from longtail.data.tables.label_codes import LABEL_BYTES, LabelCodes, as_texts

_KIND = "a parquet file"
_COPIES = 4  # of texts, in memory at the same time


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """A parquet file as rows and named columns, whose types pyarrow's schema has."""

    path: Path
    names: tuple[str, ...]
    num_rows: int
    schema: Any

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Of a file, or an ImportError that says how to get pyarrow."""
        file = _opened(path)
        schema = file.schema_arrow
        return cls(path, tuple(schema.names), file.metadata.num_rows, schema)

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.names)

    @property
    def lists(self) -> list[str]:
        """The columns that have a list in every row."""
        types = zip(self.names, self.schema.types, strict=True)
        return [name for name, kind in types if hasattr(kind, "value_field")]

    @property
    def index_names(self) -> list[str]:
        """The columns that pandas says are the index of its table."""
        with reading(self.path, _KIND):
            metadata = self.schema.pandas_metadata
        names = metadata.get("index_columns") if isinstance(metadata, dict) else None
        # A range is described, not named: no column.
        return [name for name in names if name in self.names] if isinstance(names, list) else []

    def head(self, position: int, rows: int) -> list[str]:
        """The first values of a column, as text."""
        first = next(self._batches(rows, [self.names[position]]), None)
        return [] if first is None else [str(value) for value in first.column(0).to_pylist()]

    def labels(self, *positions: int) -> tuple[int, list[LabelCodes]]:
        """How many rows there are, and the labels in these columns."""
        return self.num_rows, [self._labels(self.names[position]) for position in positions]

    def numbers(self, positions: Sequence[int], rows: int) -> Iterator[Numbers]:
        """The numbers in these columns, at most so many rows at a time."""
        names = [self.names[position] for position in positions]
        for batch in self._batches(rows, names):
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            yield np.column_stack(columns)

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type of the numbers of a column, or of those in its lists."""
        kind = self.schema.field(name).type
        dtype: np.dtype[Any] = np.dtype(getattr(kind, "value_type", kind).to_pandas_dtype())
        return dtype

    def length(self, name: str) -> int:
        """How long the first list of a column is."""
        first = next(self._batches(1, [name]), None)
        return 0 if first is None else len(first.column(0)[0])

    def list_numbers(self, name: str, rows: int) -> Iterator[Numbers]:
        """The numbers in the lists of a column, all as long as the first."""
        start, width = 0, self.length(name)
        for batch in self._batches(rows, [name]):
            lengths = np.asarray(batch.column(0).value_lengths().fill_null(0))
            if (lengths != width).any():
                row = int((lengths != width).argmax())
                raise ValueError(
                    f"{self.path} has {width} scores in its first row, but {lengths[row]} in row "
                    f"{start + row}; correct that row"
                )
            values = batch.column(0).flatten().to_numpy(zero_copy_only=False)
            yield values.reshape(len(lengths), width)
            start += len(lengths)

    def _labels(self, name: str) -> LabelCodes:
        """Integers, strings or a dictionary of strings."""
        where = f"column {name!r} of {self.path}"
        file = _opened(self.path)
        with reading(self.path, _KIND):
            unpacked = _unpacked_size(file, name)
        # A million equal labels are a few bytes on the disk, and in memory what a million are.
        check_memory(LABEL_BYTES * self.num_rows + _COPIES * unpacked, where)
        with reading(self.path, _KIND):
            encoded = file.read(columns=[name]).column(0).combine_chunks()
        if encoded.null_count:
            row = encoded.is_null().index(True).as_py()
            raise ValueError(
                f"{self.path} has no label in row {row} of column {name!r}; leave that row out"
            )
        if not hasattr(encoded, "dictionary"):
            try:
                encoded = encoded.dictionary_encode()
            except NotImplementedError:  # lists, structs, maps
                raise ValueError(
                    f"{where} must be class indices or class names, got {encoded.type}; "
                    "name another column, or make one of labels"
                ) from None
        with reading(self.path, _KIND):
            entries = encoded.dictionary.to_pylist()
        if all(isinstance(entry, str | bytes) for entry in entries):
            values = LabelCodes.of_texts(as_texts(entries, where))
        else:
            values = LabelCodes.of_array(np.array(entries), where)
        # Among the distinct values, where each entry of the dictionary stands.
        codes = values.codes[encoded.indices.to_numpy()]
        return LabelCodes(values.values, codes, values.stored_as_numbers)

    def _batches(self, rows: int, names: Sequence[str]) -> Iterator[Any]:
        with reading(self.path, _KIND):
            yield from _opened(self.path).iter_batches(rows, columns=names)


def _unpacked_size(file: Any, name: str) -> int:
    """How many bytes of a column the pages hold when they are unpacked."""
    columns = [at for at in range(len(file.schema)) if file.schema.column(at).path == name]
    groups = map(file.metadata.row_group, range(file.num_row_groups))
    return sum(group.column(at).total_uncompressed_size for group in groups for at in columns)


def _opened(path: Path) -> Any:
    check_is_file(path)
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f'{path} needs pyarrow to be read; run: pip install "longtail[parquet]"'
        ) from error
    with reading(path, _KIND):
        # Without a buffer a whole row group, of a million rows by default, is read at once.
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)
