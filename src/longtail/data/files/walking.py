"""Going through folders, links followed, without going round in circles."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]


def subfolders(folder: Path) -> list[str]:
    """The names of the folders in a folder, in the order of the alphabet; no hidden ones."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))


def files_below(folder: Path, apart: Iterable[Path] = ()) -> Iterator[tuple[str, list[str]]]:
    """Each folder from this one down with the names of its files; hidden folders are left out.

    A folder that several links lead to is gone through once, so that no file counts twice.

    Args:
        folder: Where to begin.
        apart: Folders that are none of this one's, such as the one above it and those beside it,
            though a link in it may lead there.
    """
    seen = {_identity(place) for place in apart}
    for place, inside, names in os.walk(folder, followlinks=True):
        seen.add(_identity(place))
        inside[:] = [name for name in inside if not name.startswith(".")]
        inside[:] = list(_new(place, sorted(inside), seen))
        yield place, _readable(place, names)


def _readable(place: str, names: list[str]) -> list[str]:
    """Without pipes, sockets and devices, on which a reader would wait for ever.

    A link that leads nowhere stays: whoever reads it says so.
    """
    with os.scandir(place) as entries:
        others = {e.name for e in entries if not e.is_file() and os.path.exists(e.path)}
    return [name for name in names if name not in others]


def _new(place: str, names: Iterable[str], seen: set[Identity]) -> Iterator[str]:
    for name in names:
        identity = _identity(os.path.join(place, name))
        if identity not in seen:
            seen.add(identity)
            yield name


def _identity(place: str | os.PathLike[str]) -> Identity:
    found = os.stat(place)
    return found.st_dev, found.st_ino
