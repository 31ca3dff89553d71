"""A column of a table, asked for by its name or by its place counted from 0."""

from collections.abc import Sequence
from pathlib import Path


def column_place(column: str | int, names: Sequence[str] | None, width: int, path: Path) -> int:
    """Where it is, or a ValueError that says what there is; `names` is None without a header."""
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{path} has no column {column!r}: its first line was not taken for names; "
                "give the column's place, counted from 0, or say --header if it does name them"
            )
        if column not in names:
            listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"{path} has no column {column!r}, only {listed}; name one of these")
        return list(names).index(column)
    if not 0 <= column < width:
        raise ValueError(
            f"{path} has {width} columns, counted 0 to {width - 1}, so none at {column}; "
            "give one of these places"
        )
    return column
