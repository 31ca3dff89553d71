"""Class names listed in a file: a JSON list, or text with a name a line."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from longtail.data.files.errors import check_is_file, reading
from longtail.data.files.text import lines_of, suffix_of


def check_written(names: Iterable[str], where: str) -> None:
    """A ValueError if a name cannot be written to a file: those of folders may be any bytes."""
    for name in names:
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"{where} has the class {name!r}, which is no text in UTF-8 and could not be "
                "written with the results; rename it"
            ) from None


def read_class_names(path: Path) -> tuple[str, ...]:
    """The names in the order of the classes, or a ValueError."""
    if suffix_of(path) == ".json":
        check_is_file(path)
        with reading(path, "a JSON list of class names"):
            names = msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
    elif suffix_of(path) == ".txt":
        names = tuple(line.strip() for line in lines_of(path))
    else:
        raise ValueError(
            f"{path} must list the class names as .json (a list) or .txt (a name a line); "
            "convert it to one"
        )
    if not names or len(set(names)) != len(names):
        raise ValueError(
            f"{path} must name every class once, got {len(names)} names, "
            f"{len(set(names))} of them different; correct the list"
        )
    return names
