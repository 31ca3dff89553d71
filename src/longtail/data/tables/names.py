"""What classes, and the parts of a data set, are called in files."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from longtail.data.tables.errors import check_is_file, reading
from longtail.data.tables.text import lines_of, suffix_of

WHOLE = "all"  # the only part of a file that has no parts
SPLITS: Mapping[str, str] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}


def split_named(name: str) -> str | None:
    """Our name of the part: train, validation or test; None if it is no name of a part."""
    return SPLITS.get(name.strip().lower())


def first_few(texts: Iterable[str], most: int = 3) -> str:
    """The first of a list, and dots if there are more."""
    shown = list(islice(texts, most + 1))
    return ", ".join([*shown[:most], *(["..."] if len(shown) > most else [])])


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
    """The names in a JSON list, or in text with a name a line, in the order of the classes."""
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
