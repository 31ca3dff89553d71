"""Lines and fields of text tables: .csv, .tsv and their .gz, UTF-8 with or without a mark."""

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from longtail.data.files.errors import check_is_file, reading

_LONGEST_LINE = 2**26  # characters: a million classes with all digits of their scores
# Text of numbers is packed to a third, of labels in order to a hundredth. A file that was made to
# fill memory swells a thousandfold; if it is small in all, it does no harm.
_MOST_UNPACKED, _MOST_SWELLING = 2**26, 200


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
        return io.TextIOWrapper(io.BufferedReader(_Unpacked(path), 2**20), encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


class _Unpacked(io.RawIOBase):
    """A .gz file as it is unpacked, which ends with an error where it swells as none should."""

    def __init__(self, path: Path) -> None:
        self._file = gzip.GzipFile(path)
        self._most = max(_MOST_UNPACKED, _MOST_SWELLING * path.stat().st_size)
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = self._file.read1(len(buffer))
        buffer[: len(got)] = got
        self._read += len(got)
        if self._read > self._most:
            raise ValueError(
                f"it unpacks to more than {self._most / 2**30:.3g} GB, {_MOST_SWELLING} times its "
                "size and more; if that is meant, unpack it first"
            )
        return len(got)

    def close(self) -> None:
        self._file.close()
        super().close()


def all_lines(file: TextIO) -> Iterator[str]:
    """The lines with their ends; a ValueError for one that no row of a table can be."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError(f"it has a line of {_LONGEST_LINE:,} characters or more")
        yield line


def lines_of(path: Path) -> Iterator[str]:
    """The lines that have something in them, without their ends."""
    check_is_file(path)
    with reading(path, "UTF-8 text"), open_text(path) as file:
        for line in all_lines(file):
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
            yield from filter(None, csv.reader(all_lines(file), delimiter=delimiter))
        except csv.Error as error:
            raise ValueError(str(error)) from error


def fields_of(line: str, delimiter: str, path: Path) -> list[str]:
    """The fields of one line. Quotes hold a field together in .csv; in .tsv they are text."""
    if delimiter == "\t" or '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"{path} has a line that is no row ({error}); mend it") from error
