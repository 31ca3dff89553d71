"""The rows of an image list: a path, a label as text, and the line they stand in."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from longtail.data.files.column_place import column_place
from longtail.data.files.errors import check_is_file, reading
from longtail.data.files.text import all_lines, delimiter_of, open_text, rows_of
from longtail.data.images.folders import is_image

_PATHS = ("path", "file", "filename", "file_name", "image", "image_path")
_LABELS = ("label", "class", "category", "target")
_SPLITS = ("split", "subset", "partition")


class ImageRow(NamedTuple):
    """An image of a list; lines, or rows of a table, count from 1, as editors show them."""

    path: str
    label: str
    line: int


def text_rows(path: Path, has_folder_labels: bool) -> list[ImageRow]:
    """The lines of a .txt list, or a ValueError that says which line is none.

    Args:
        path: The list.
        has_folder_labels: Whether a line that ends in the name of an image is labelled by the
            folder of that image.
    """
    check_is_file(path)
    with reading(path, "UTF-8 text"), open_text(path) as file:
        lines = [(at, text.strip()) for at, text in enumerate(all_lines(file), 1)]
    return [_row(text, path, at, has_folder_labels) for at, text in lines if text]


def table_rows(path: Path) -> list[ImageRow]:
    """The rows of a .csv or .tsv list whose first line names the columns."""
    rows = rows_of(path, delimiter_of(path))
    names = [name.strip().lower() for name in next(rows, [])]
    split = set(names) & set(_SPLITS)
    if split:
        raise ValueError(
            f"{path} has a column {split.pop()!r}, and its parts must not be mixed; "
            "write a list for each part"
        )
    at_path, at_label = _column(names, _PATHS, path), _column(names, _LABELS, path)
    found = []
    for line, fields in enumerate(rows, 2):
        if len(fields) <= max(at_path, at_label):
            raise ValueError(
                f"{path} has {len(fields)} columns in row {line}, too few; mend that row"
            )
        row = ImageRow(fields[at_path].strip(), fields[at_label].strip(), line)
        if not (row.path and row.label):
            raise ValueError(f"{path} has no path or no label in row {line}; leave that row out")
        found.append(row)
    return found


def _row(text: str, path: Path, line: int, has_folder_labels: bool) -> ImageRow:
    if not is_image(text):
        words = text.rsplit(maxsplit=1)
        if len(words) == 2:
            return ImageRow(words[0], words[1], line)
    elif has_folder_labels:
        return ImageRow(text, os.path.dirname(text), line)
    raise ValueError(
        f"{path} has {text[:60]!r} in line {line}, expected a path, a space and a label; if the "
        "folder is the label, as in SUN397, give the list of folders (ClassName.txt) as classes"
    )


def _column(names: Sequence[str], usual: Sequence[str], path: Path) -> int:
    found = next((name for name in usual if name in names), usual[0])
    return column_place(found, names, len(names), path)
