"""Which arrays or columns of a file are scores, labels and ids, and which is only an index.

`DataFrame.to_csv` puts the index of a table first, under no name; read and written again it is
called "Unnamed: 0". A parquet file says itself which columns are an index.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from longtail.data.tables.errors import MissingError
from longtail.data.tables.label_codes import first_few
from longtail.data.tables.parquet import ParquetTable
from longtail.data.tables.score_table import Kind
from longtail.data.tables.text import TextTable, is_number

Table: TypeAlias = TextTable | ParquetTable

# Of columns or arrays beside scores.
LABEL_NAMES = ("labels", "label")
ID_NAMES = ("ids", "id")
# What an array of scores may be called if nobody said: its kind, or what says nothing of it.
_SCORE_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "logits": ("logits", "scores", "arr_0"),
    "probs": ("probs", "probabilities", "scores", "arr_0"),
}
_NO_NAME = re.compile(r"(Unnamed: \d+(\.\d+)*|__index_level_\d+__)?")
_WHOLE = re.compile(r"-?\d+")
_ENOUGH = 3  # rows whose own numbers stand in a column: by accident no more
_LOOKED_AT = 1000  # rows that tell whether the first column is an index


@dataclass(frozen=True)
class Layout:
    """Where things are in a file of scores, as far as it does not say so itself.

    Arrays are those of .npz or .safetensors by name, and columns of tables are known by their name
    or their place counted from 0.
    """

    scores: str | None = None  # array, or list column of .parquet; by default "logits" or "probs"
    labels: str | int | None = None  # by default "labels" or "label"
    ids: str | int | None = None  # what tells the samples apart; by default "ids" or "id"
    skip: Sequence[str | int] = ()  # columns that are none of these
    header: bool | None = None  # by default the first line names columns if a field is no number
    delimiter: str | None = None  # by default a tab in .tsv, else a comma


class Columns(NamedTuple):
    """Places of columns, counted from 0, and what those of scores are called."""

    scores: tuple[int, ...]
    label: int | None
    ids: int | None
    classes: tuple[str, ...] | None


def scores_name(names: Sequence[str], kind: Kind, asked: str | None, path: Path) -> str:
    """Which of the named arrays holds the scores, or a ValueError that lists them."""
    chosen = optional_name(names, _SCORE_NAMES[kind], asked, path)
    if chosen is not None:
        return chosen
    other: Kind = "probs" if kind == "logits" else "logits"
    contradicted = optional_name(names, _SCORE_NAMES[other], None, path)
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


def optional_name(
    names: Sequence[str], usual: Sequence[str], asked: str | int | None, path: Path
) -> str | None:
    """The name that was asked for, or the usual one that is there, or None."""
    if asked is None:
        return next((name for name in usual if name in names), None)
    if asked not in names:
        listed = ", ".join(sorted(names)) or "nothing"
        raise MissingError(
            asked, f"{path} has no array {asked!r}, only {listed}; name one of these"
        )
    return str(asked)


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
            listed = first_few(names, 10)
            raise MissingError(
                column, f"{path} has no column {column!r}, only {listed}; name one of these"
            )
        if names.count(column) > 1:
            raise ValueError(f"{path} has two columns called {column!r}; rename one of them")
        return names.index(column)
    if not 0 <= column < width:
        raise ValueError(
            f"{path} has {width} columns, counted 0 to {width - 1}, so none at {column}; "
            "give one of these places"
        )
    return column


def score_columns(table: Table, layout: Layout) -> Columns:
    """All columns but labels, ids, an index and those to skip, or a ValueError."""
    names, path = table.names, table.path

    def position_of(column: str | int | None, usual: Sequence[str]) -> int | None:
        if column is None:
            column = optional_name(names or (), usual, None, path)
        return None if column is None else column_place(column, names, table.width, path)

    label, ids = position_of(layout.labels, LABEL_NAMES), position_of(layout.ids, ID_NAMES)
    aside = {column_place(column, names, table.width, path) for column in layout.skip}
    ids = None if ids in aside else ids
    aside |= {at for at in (label, ids) if at is not None}
    for at in _index_positions(table, aside):
        called = repr(names[at]) if names is not None and names[at] else "without a name"
        warnings.warn(
            f"{path}: the column {called} is the index of a table, not a class: it is left out",
            stacklevel=2,
        )
        aside.add(at)
    scores = tuple(at for at in range(table.width) if at not in aside)
    classes = None if names is None else tuple(names[at] for at in scores)
    if classes and len(set(classes)) != len(classes):
        twice = Counter(classes).most_common(1)[0][0]
        raise ValueError(
            f"{path} has two columns called {twice!r}; give every class a name of its own"
        )
    return Columns(scores, label, ids, classes)


def has_header(table: TextTable, layout: Layout) -> bool:
    """Whether the first line names the columns; a ValueError if it could be either."""
    if layout.header is not None:
        return layout.header
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


def is_row_index(name: str | None, values: Iterable[str]) -> bool:
    """Whether the first column of a table is an index, by its name, if any, and its first fields.

    >>> is_row_index("", ["17", "4"]), is_row_index("cat", ["0.5", "1"])
    (True, False)
    """
    texts = list(values)
    if name is not None and _NO_NAME.fullmatch(name):
        # Numbers with a fraction are scores: of a class that somebody forgot to name.
        return all(_WHOLE.fullmatch(text) or not is_number(text) for text in texts)
    numbered = all(text == str(row) for row, text in zip(count(), texts, strict=False))
    return numbered and len(texts) >= _ENOUGH


def _index_positions(table: Table, aside: set[int]) -> list[int]:
    """The columns that are the index of a data frame and nothing that was asked for."""
    names = table.names or ()
    # Other libraries keep the name that pandas gave it, but not what pandas said of it.
    positions = [
        at
        for at, name in enumerate(names)
        if name in table.index_names
        or (name.startswith("__index_level_") and _NO_NAME.fullmatch(name))
        if at not in aside
    ]
    if 0 not in (*positions, *aside):
        name = names[0] if names else None
        positions += [0] if is_row_index(name, table.head(0, _LOOKED_AT)) else []
    return positions
