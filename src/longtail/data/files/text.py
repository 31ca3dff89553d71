"""Lines and fields of text tables: .csv, .tsv and their .gz, UTF-8 with or without a mark."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

from longtail.data.files.errors import check_is_file, reading


def suffix_of(path: Path) -> str:
    """The ending that says the format, in small letters, without a final .gz."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def delimiter_of(path: Path) -> str:
    """A tab for .tsv, else a comma."""
    return "\t" if suffix_of(path) == ".tsv" else ","


def open_text(path: Path) -> TextIO:
    """The file as text, unpacked if its name ends in .gz."""
    if path.name.lower().endswith(".gz"):
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig"))
    return path.open(encoding="utf-8-sig")


def lines_of(path: Path) -> Iterator[str]:
    """The lines that have something in them, without their ends."""
    check_is_file(path)
    with reading(path, "UTF-8 text"), open_text(path) as file:
        for line in file:
            stripped = line.rstrip("\r\n")
            if stripped:
                yield stripped


def rows_of(path: Path, delimiter: str) -> Iterator[list[str]]:
    """The fields of each line that is not blank; in .csv a quoted field may go over lines."""
    if delimiter == "\t":
        yield from (line.split("\t") for line in lines_of(path))
        return
    check_is_file(path)
    with reading(path, "UTF-8 text"), open_text(path) as file:
        try:
            yield from filter(None, csv.reader(file, delimiter=delimiter))
        except csv.Error as error:
            raise ValueError(str(error)) from error


def fields_of(line: str, delimiter: str) -> list[str]:
    """The fields of one line. Quotes hold a field together in .csv; in .tsv they are text."""
    if delimiter == "\t" or '"' not in line:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter))
