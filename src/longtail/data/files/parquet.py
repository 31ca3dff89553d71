"""Parquet files, read with pyarrow, which comes with the extra `parquet`."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from longtail.core.memory import check_memory
from longtail.data.files.errors import check_is_file, reading
from longtail.data.files.label_codes import LABEL_BYTES, LabelCodes


def open_parquet(path: Path) -> Any:
    """The opened ParquetFile, or an ImportError that says how to get pyarrow."""
    check_is_file(path)
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(
            f'{path} needs pyarrow to be read; run: pip install "longtail[parquet]"'
        ) from error
    with reading(path, "a parquet file"):
        # Without a buffer a whole row group, of a million rows by default, is read at once.
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)


def parquet_labels(file: Any, column: str, path: Path) -> LabelCodes:
    """The labels in that column: integers, strings or a dictionary of strings."""
    # A million equal labels are a few bytes on the disk, and in memory what a million are.
    check_memory(LABEL_BYTES * file.metadata.num_rows, f"column {column!r} of {path}")
    with reading(path, "a parquet file"):
        encoded = file.read(columns=[column]).column(0).combine_chunks()
    if encoded.null_count:
        row = encoded.is_null().index(True).as_py()
        raise ValueError(
            f"{path} has no label in row {row} of column {column!r}; leave that row out"
        )
    if not hasattr(encoded, "dictionary"):
        try:
            encoded = encoded.dictionary_encode()
        except NotImplementedError:  # lists, structs, maps
            raise ValueError(
                f"column {column!r} of {path} must be class indices or class names, got "
                f"{encoded.type}; name another column, or make one of labels"
            ) from None
    values = LabelCodes.of_array(
        np.array(encoded.dictionary.to_pylist()), f"column {column!r} of {path}"
    )
    # Among the sorted distinct values, where each entry of the dictionary stands.
    codes = values.codes[encoded.indices.to_numpy()]
    return LabelCodes(values.values, codes, values.stored_as_numbers)
