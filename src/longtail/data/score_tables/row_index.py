"""The index that pandas writes beside a table: a column of row numbers or names, but no class.

`DataFrame.to_csv` puts it first, under no name; read and written again it is called "Unnamed: 0".
A parquet file says itself which columns are an index.
"""

import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from pathlib import Path

_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)*|__index_level_\d+__)?")
_WHOLE = re.compile(r"-?\d+")
_ENOUGH = 3  # rows whose own numbers stand in a column: by accident no more


def is_row_index(name: str | None, values: Iterable[str]) -> bool:
    """Whether the first column of a table is an index.

    Args:
        name: What it is called; None if there are no names.
        values: Its first fields, as they are written.

    >>> is_row_index("", ["17", "4"]), is_row_index("cat", ["0.5", "1"])
    (True, False)
    """
    texts = list(values)
    if name is not None and _NO_NAME.fullmatch(name):
        # Numbers with a fraction are scores: of a class that somebody forgot to name.
        return all(_WHOLE.fullmatch(text) or not is_number(text) for text in texts)
    numbered = all(text == str(row) for row, text in zip(count(), texts, strict=False))
    return numbered and len(texts) >= _ENOUGH


def is_index_name(name: str) -> bool:
    """Whether a column has the name that pandas gives an index without one in a parquet file."""
    return name.startswith("__index_level_") and _NO_NAME.fullmatch(name) is not None


def pandas_index(metadata: object, wanted: Collection[str | int | None]) -> Sequence[str]:
    """The columns of a parquet file that pandas says are an index, but for those asked for.

    Args:
        metadata: What the file's schema holds of pandas, or None.
        wanted: Columns that are asked for by name, such as that of the labels.
    """
    said = metadata.get("index_columns") if isinstance(metadata, dict) else None
    names = said if isinstance(said, list) else []  # a range is described, not named: no column
    return [name for name in names if isinstance(name, str) and name not in wanted]


def warn_of_index(name: str | None, path: Path) -> None:
    """Say that a column was left out."""
    called = f" {name!r}" if name else ""
    warnings.warn(
        f"{path}: the column{called or ' without a name'} is the index of a table, not a class: "
        "it is left out",
        stacklevel=2,
    )


def is_number(text: str) -> bool:
    """Whether a field of a table is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
