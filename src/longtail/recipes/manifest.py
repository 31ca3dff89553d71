"""The list of the files of one generation, as a folder keeps it.

A folder may come from a stranger, and by this list files are removed. So it is read only if it is a
plain file, and believed only as a whole: every key is there, and every name is that of a file in
the folder itself.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

MANIFEST = "generation.json"
HIDDEN = ".longtail"  # as core.locks has it, which imports torch
_MOST_BYTES = 2**20
_LONGEST = 255  # characters of a name, on all file systems


class Manifest(NamedTuple):
    """What a generation is, its files, and files of older runs that it takes the place of."""

    kind: str
    files: tuple[str, ...]
    replaces: tuple[str, ...]


def read_manifest(place: Path) -> Manifest | None:
    """What the file says, None if there is none; a ValueError that names it if it is damaged."""
    try:
        data = _bytes_of(place)
    except FileNotFoundError:
        return None
    except ValueError:
        raise _damaged(place) from None
    try:
        said = json.loads(data.decode("utf-8"))
        return Manifest(_name(said["kind"]), _names(said["files"]), _names(said["replaces"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(place) from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put it into the folder."""
    (folder / MANIFEST).write_text(json.dumps(manifest._asdict()) + "\n", encoding="utf-8")


def is_plain_file(place: Path) -> bool:
    """Whether it is a file, and no link, pipe or device."""
    try:
        return stat.S_ISREG(os.lstat(place).st_mode)
    except OSError:
        return False


def _bytes_of(place: Path) -> bytes:
    """A ValueError if it is no plain file of a size that such a list has."""
    if os.path.lexists(place) and not is_plain_file(place):
        raise ValueError("no plain file")
    # Should it become a pipe in between: nobody waits for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(place, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise ValueError("no plain file, or too large")
        return file.read(_MOST_BYTES)


def _damaged(place: Path) -> ValueError:
    hidden = next(parent for parent in place.parents if parent.name == HIDDEN)
    return ValueError(
        f"{place} is damaged; remove {hidden}, and what is in {hidden.parent} counts as yours"
    )


def _names(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list):
        raise TypeError("no list")
    return tuple(map(_name, names))


def _name(name: Any) -> str:
    """A name of a file and no path: what is removed lies in the folder, whatever a file says."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise TypeError("no name")
    if name in (".", "..") or name.casefold() == HIDDEN or any(c in name for c in "/\\\0"):
        raise ValueError("a name with a folder in it")
    name.encode("utf-8")  # not every str is the name of a file
    return name
