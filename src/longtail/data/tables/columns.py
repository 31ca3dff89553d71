"""Which columns of a table are scores, which one is the label, and which is only an index.

`DataFrame.to_csv` puts the index of a table first, under no name; read and written again it is
called "Unnamed: 0". A parquet file says itself which columns are an index.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from longtail.data.tables.errors import MissingError
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.text import TextTable, is_number

Table: TypeAlias = TextTable | ParquetTable

# Of columns or arrays beside scores.
LABEL_NAMES = ("labels", "label")
ID_NAMES = ("ids", "id")

_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)*|__index_level_\d+__)?")
_WHOLE = re.compile(r"-?\d+")
_ENOUGH = 3  # rows whose own numbers stand in a column: by accident no more
_LOOKED_AT = 1000  # rows that tell whether the first column is an index


class Columns(NamedTuple):
    """Places of columns, counted from 0, and what those of scores are called."""

    scores: tuple[int, ...]
    label: int | None
    ids: int | None
    classes: tuple[str, ...] | None


def column_place(column: str | int, names: Sequence[str] | None, width: int, path: Path) -> int:
    """Where a column is, asked for by its name or place; `names` is None without a header."""
    if isinstance(column, str):
        if names is None:
            raise MissingError(
                column,
                f"{path} has no column {column!r}: its first line was not taken for names; "
                "give the column's place, counted from 0, or say --header if it does name them",
            )
        if column not in names:
            listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise MissingError(
                column, f"{path} has no column {column!r}, only {listed}; name one of these"
            )
        return list(names).index(column)
    if not 0 <= column < width:
        raise ValueError(
            f"{path} has {width} columns, counted 0 to {width - 1}, so none at {column}; "
            "give one of these places"
        )
    return column


def score_columns(
    table: Table,
    labels: str | int | None = None,
    ids: str | int | None = None,
    skip: Sequence[str | int] = (),
) -> Columns:
    """All columns but labels, ids, an index and those to skip, or a ValueError."""
    names, path = table.names, table.path

    def place_of(column: str | int | None, usual: Sequence[str]) -> int | None:
        if column is None:
            column = next((name for name in usual if name in (names or ())), None)
        return None if column is None else column_place(column, names, table.width, path)

    label, id_place = place_of(labels, LABEL_NAMES), place_of(ids, ID_NAMES)
    aside = {column_place(column, names, table.width, path) for column in skip}
    id_place = None if id_place in aside else id_place
    aside |= {place for place in (label, id_place) if place is not None}
    for place in _index_places(table, aside):
        called = repr(names[place]) if names is not None and names[place] else "without a name"
        warnings.warn(
            f"{path}: the column {called} is the index of a table, not a class: it is left out",
            stacklevel=2,
        )
        aside.add(place)
    scores = tuple(at for at in range(table.width) if at not in aside)
    classes = None if names is None else tuple(names[at] for at in scores)
    if classes and len(set(classes)) != len(classes):
        twice = Counter(classes).most_common(1)[0][0]
        raise ValueError(
            f"{path} has two columns called {twice!r}; give every class a name of its own"
        )
    return Columns(scores, label, id_place, classes)


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


def _index_places(table: Table, aside: set[int]) -> list[int]:
    """The columns that are the index of a data frame and nothing that was asked for."""
    names = table.names or ()
    # Other libraries keep the name that pandas gave it, but not what pandas said of it.
    named = [
        at
        for at, name in enumerate(names)
        if name in table.index_names
        or (name.startswith("__index_level_") and _NO_NAME.fullmatch(name))
    ]
    places = [at for at in named if at not in aside]
    if 0 not in (*places, *aside):
        name = names[0] if names else None
        places += [0] if is_row_index(name, table.head(0, _LOOKED_AT)) else []
    return places
