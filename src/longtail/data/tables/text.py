"""Text tables, .csv, .tsv and their .gz, UTF-8 with or without a mark; and JSON.

A table is gone through once for its labels, which also counts its rows and the fields of each, and
once for its numbers, which NumPy's own parser reads.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, tee
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeVar

import msgspec
import numpy as np

from longtail.core.arrays import Floats
from longtail.core.files import read_whole
from longtail.data.tables.errors import check_is_file, reading
from longtail.data.tables.label_codes import LabelCodes

_Row = TypeVar("_Row")
_Value = TypeVar("_Value")

_LONGEST_LINE = 2**26  # characters: a million classes with all digits of their scores
# Text of numbers is packed to a third, of labels in order to a hundredth. A file that was made to
# fill memory swells a thousandfold; if it is small in all, it does no harm.
_MOST_UNPACKED, _MOST_SWELLING = 2**26, 200


def suffix_of(path: Path) -> str:
    """The ending that says the format, in small letters, without a final .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def lines_of(path: Path) -> Iterator[str]:
    """The lines that have something in them, without their ends."""
    return filter(None, (line.rstrip("\r\n") for line in all_lines(path)))


def all_lines(path: Path) -> Iterator[str]:
    """The lines with their ends; a ValueError for one that no row of a table can be."""
    check_is_file(path)
    most, unpacked = max(_MOST_UNPACKED, _MOST_SWELLING * path.stat().st_size), 0
    with reading(path, "UTF-8 text"), _opened(path) as file:
        while line := file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"it has a line of {_LONGEST_LINE:,} characters or more")
            unpacked += len(line)
            if unpacked > most:  # a file that is not packed has no more characters than bytes
                raise ValueError(
                    f"it unpacks to more than {most / 2**30:.3g} GB, {_MOST_SWELLING} times its "
                    "size and more; if that is meant, unpack it first"
                )
            yield line


def read_json(path: Path, decoder: msgspec.json.Decoder[_Value], expected: str) -> _Value:
    """The values of a JSON file, or a ValueError: for a key that stands twice, too.

    "must be `expected`", the sentence says.
    """
    check_is_file(path)
    text = read_whole(path)
    try:
        values = decoder.decode(text)
    except (ValueError, RecursionError) as error:  # of JSON, or of the text in it
        raise ValueError(f"{path} must be {expected} ({error}); correct it") from error
    json.loads(text, object_pairs_hook=partial(_check_once, path))
    return values


def _check_once(path: Path, pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):  # of which readers take the last
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{path} has {twice!r:.80} twice; leave one of them out")


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class TextTable:
    """A text file as rows of fields.

    Whether its first line names the columns is known to whoever reads it. If it is `exact`, every
    row must have as many fields as the first; else only enough of them.
    """

    path: Path
    delimiter: str
    first: tuple[str, ...]
    has_header: bool = False
    exact: bool = False
    index_names: tuple[str, ...] = ()  # no text says that a column is an index

    @classmethod
    def open(cls, path: Path, delimiter: str | None = None, exact: bool = False) -> TextTable:
        """With a tab between the fields of .tsv, else a comma; a ValueError if there is no row."""
        chosen = delimiter or ("\t" if suffix_of(path) == ".tsv" else ",")
        first = next(cls(path, chosen, ()).rows(), None)
        if first is None:
            raise ValueError(f"{path} has no rows; make it again from at least one sample")
        return cls(path, chosen, tuple(text.strip() for text in first), exact=exact)

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the columns are called, if the first line says so."""
        return self.first if self.has_header else None

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.first)

    def rows(self) -> Iterator[list[str]]:
        """The fields of each row, without those of the header.

        Quotes hold a field together, over lines too; in .tsv they are text.
        """
        lines = all_lines(self.path)
        if self.delimiter == "\t":
            return self._below_header(
                line.rstrip("\n").split("\t") for line in lines if line != "\n"
            )
        return self._below_header(filter(None, csv.reader(lines, delimiter=self.delimiter)))

    def head(self, position: int, rows: int) -> list[str]:
        """The first fields of a column."""
        fields = (row[position : position + 1] for row in islice(self.rows(), rows))
        return [text.strip() for row in fields for text in row]

    def labels(self, *positions: int) -> tuple[int, list[LabelCodes]]:
        """How many rows there are, and what stands in these columns; every row is checked."""
        pick = itemgetter(*positions) if positions else len
        seen: dict[Any, int] = {}
        rows = self._exact_fields(positions) if self.exact else self._enough_fields(positions)
        codes = np.fromiter((seen.setdefault(pick(row), len(seen)) for row in rows), np.int64)
        texts = [(key,) for key in seen] if len(positions) == 1 else list(seen)
        columns = [
            LabelCodes.of_texts(each[at].strip() for each in texts) for at in range(len(positions))
        ]
        return len(codes), [LabelCodes(each.values, each.codes[codes]) for each in columns]

    def numbers(self, positions: Sequence[int], rows: int) -> Iterator[Floats]:
        """The numbers in these columns, at most so many rows at a time."""
        lines, start = (line for line, _ in self._lines()), 0
        for first in lines:
            try:
                block = np.loadtxt(
                    chain([first], islice(lines, rows - 1)),
                    delimiter=self.delimiter,
                    comments=None,
                    quotechar=None if self.delimiter == "\t" else '"',
                    usecols=None if len(positions) == self.width else positions,
                    ndmin=2,
                )
            except ValueError as error:
                reason = self._no_number(positions, start) or f"{self.path}: {error}"
                raise ValueError(reason) from error
            yield block
            start += len(block)

    def _enough_fields(self, positions: Sequence[int]) -> Iterator[list[str]]:
        last = max(positions, default=0)
        for row, fields in enumerate(self.rows()):
            if len(fields) <= last:
                raise ValueError(
                    f"{self.path} has {len(fields)} columns in row {row}, too few to have a label "
                    f"in column {last}; correct that row"
                )
            yield fields

    def _exact_fields(self, positions: Sequence[int]) -> Iterator[dict[int, str]]:
        for row, (line, fields) in enumerate(self._lines()):
            width = line.count(self.delimiter) + 1 if fields is None else len(fields)
            if width != self.width:
                raise ValueError(
                    f"{self.path} has {self.width} columns, but {width} in row {row}; correct it"
                )
            yield {at: self._cut(line, at) if fields is None else fields[at] for at in positions}

    def _cut(self, line: str, position: int) -> str:
        """One field without cutting all of a wide line."""
        behind = self.width - position
        if position < behind:
            return line.split(self.delimiter, position + 1)[position]
        return line.rsplit(self.delimiter, behind)[-behind]

    def _lines(self) -> Iterator[tuple[str, list[str] | None]]:
        """The text of each row below the header and, where it has quotes, its fields."""
        return self._below_header(self._rows_of(all_lines(self.path)))

    def _rows_of(self, lines: Iterator[str]) -> Iterator[tuple[str, list[str] | None]]:
        for line in lines:
            if '"' in line and self.delimiter != "\t":
                ahead, behind = tee(chain([line], lines))
                reader = csv.reader(ahead, delimiter=self.delimiter)
                fields = next(reader)
                yield "".join(islice(behind, reader.line_num)), fields
            elif line != "\n":
                yield line, None

    def _below_header(self, rows: Iterator[_Row]) -> Iterator[_Row]:
        try:
            yield from islice(rows, int(self.has_header), None)
        except csv.Error as error:
            raise ValueError(
                f"{self.path} has a line that is no row ({error}); correct it"
            ) from error

    def _no_number(self, positions: Sequence[int], start: int) -> str | None:
        """Says where the first field from row `start` on is that should be a number and is none."""
        for row, fields in enumerate(islice(self.rows(), start, None), start):
            for at in positions:
                if not is_number(fields[at]):
                    name = self.first[at] if self.has_header else at
                    return (
                        f"{self.path} has {fields[at]!r} in row {row}, column {name!r}, where a "
                        "score was expected; correct it, or say which columns hold no scores: "
                        "--label-column, --skip"
                    )
        return None


def _opened(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")
