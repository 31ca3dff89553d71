"""Scores in .csv and .tsv files, plain or .gz.

The file is gone through twice: once, when it is opened, for the number of rows, the width of every
line and the labels, and once for the numbers, which NumPy's own parser reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from longtail.data.files.column_place import column_place
from longtail.data.files.label_codes import LabelCodes
from longtail.data.files.text import delimiter_of, fields_of, lines_of
from longtail.data.score_tables.columns import Columns, choose_columns
from longtail.data.score_tables.contents import (
    LABEL_NAMES,
    Contents,
    Kind,
    Layout,
    Matrix,
    check_shape,
)
from longtail.data.score_tables.row_index import is_number, is_row_index, warn_of_index

_LOOKED_AT = 1000  # rows that tell whether the first column is an index


def read_text(path: Path, kind: Kind, layout: Layout) -> Contents:
    """A line a sample, a column a class, and where there is one a column of labels."""
    delimiter = layout.delimiter or delimiter_of(path)
    first = next(lines_of(path), None)
    if first is None:
        raise ValueError(f"{path} has no rows; make it again from at least one sample")
    fields = [text.strip() for text in fields_of(first, delimiter, path)]
    if len(fields) < 2:
        raise ValueError(
            f"{path} has one column, its first line is {first[:40]!r}; expected fields with "
            f"{delimiter!r} between them; say what stands there with --delimiter "
            "(in Python Layout(delimiter=...))"
        )
    has_header = _has_header(fields, layout, path) if layout.header is None else layout.header
    names = fields if has_header else None
    layout = _without_index(path, names, delimiter, layout)
    columns = choose_columns(names, len(fields), layout, path)
    lines = _Lines(path, delimiter, has_header, len(fields), columns)
    labels = LabelCodes.of_texts(lines.labels())
    shape = check_shape((len(labels.codes), len(columns.scores)), path)
    return Contents(
        shape,
        np.dtype(np.float64),
        lines.blocks,
        labels=None if columns.label is None else labels,
        classes=columns.classes,
    )


def _without_index(path: Path, names: list[str] | None, delimiter: str, layout: Layout) -> Layout:
    """The same, with the first column skipped where it is the index of a data frame."""
    name = None if names is None else names[0]
    aside = (layout.labels, *layout.skip)
    if 0 in aside or name in (*LABEL_NAMES, *filter(None, aside)):
        return layout
    lines = islice(lines_of(path), int(names is not None), _LOOKED_AT)
    if not is_row_index(name, (fields_of(line, delimiter, path)[0].strip() for line in lines)):
        return layout
    warn_of_index(name, path)
    return replace(layout, skip=(*layout.skip, 0))


def _has_header(fields: list[str], layout: Layout, path: Path) -> bool:
    """Whether the first line names the columns; a ValueError if it could be either."""
    if isinstance(layout.labels, str) or any(isinstance(column, str) for column in layout.skip):
        return True
    other = [] if layout.labels is None else [layout.labels]
    aside = {column_place(column, None, len(fields), path) for column in (*layout.skip, *other)}
    scores = [text for at, text in enumerate(fields) if at not in aside]
    if not all(map(is_number, scores)):
        return True
    if scores == [str(index) for index in range(len(scores))]:
        raise ValueError(
            f"the first line of {path} reads {', '.join(scores[:4])}, which may be names of "
            "columns or scores; say --header or --no-header"
        )
    return False


@dataclass(frozen=True)
class _Lines:
    """A file of which it is known where its columns are."""

    path: Path
    delimiter: str
    has_header: bool
    width: int
    columns: Columns

    def labels(self) -> Iterator[str]:
        """The label of each row, "" where there are none; every line is checked on the way."""
        label = self.columns.label
        for row, line in enumerate(self._rows()):
            quoted = '"' in line and self.delimiter != "\t"
            fields = fields_of(line, self.delimiter, self.path) if quoted else None
            found = len(fields) if fields else line.count(self.delimiter) + 1
            if found != self.width:
                raise ValueError(
                    f"{self.path} has {self.width} columns, but {found} in row {row}; mend it"
                )
            if label is None:
                yield ""
            else:
                yield (fields[label] if fields else self._field(line, label)).strip()

    def blocks(self, size: int) -> Iterator[Matrix]:
        """The scores, at most `size` rows at a time."""
        lines, start, scores = self._rows(), 0, self.columns.scores
        for first in lines:
            try:
                block = np.loadtxt(
                    chain([first], islice(lines, size - 1)),
                    delimiter=self.delimiter,
                    comments=None,
                    quotechar=None if self.delimiter == "\t" else '"',
                    usecols=None if len(scores) == self.width else scores,
                    ndmin=2,
                )
            except ValueError as error:
                raise ValueError(self._no_number(start) or f"{self.path}: {error}") from error
            yield block
            start += len(block)

    def _rows(self) -> Iterator[str]:
        return islice(lines_of(self.path), int(self.has_header), None)

    def _field(self, line: str, place: int) -> str:
        behind = self.width - place
        if place < behind:
            return line.split(self.delimiter, place + 1)[place]
        return line.rsplit(self.delimiter, behind)[-behind]

    def _no_number(self, start: int) -> str | None:
        """Says where the first field from row `start` on is that should be a number and is none."""
        scores = self.columns.scores
        named = list(zip(scores, self.columns.classes or scores, strict=True))
        for row, line in enumerate(islice(self._rows(), start, None), start):
            fields = fields_of(line, self.delimiter, self.path)
            for place, name in named:
                if not is_number(fields[place]):
                    return (
                        f"{self.path} has {fields[place]!r} in row {row}, column {name!r}, where a "
                        "score was expected; mend it, or say which columns hold no scores: "
                        "--label-column, --skip"
                    )
        return None
