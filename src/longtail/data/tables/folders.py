"""Going through folders of class folders, links followed, without going round in circles.

Either root/class/file, or root/train/class/file with val and test beside it. Hidden files and
folders do not count; files in folders below a class do, each folder once, whatever links lead to
it.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from longtail.data.tables.names import WHOLE, split_named

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
    seen = {_identity(path) for path in apart}
    for path, inside, names in os.walk(folder, followlinks=True):
        seen.add(_identity(path))
        inside[:] = [name for name in inside if not name.startswith(".")]
        inside[:] = list(_new(path, sorted(inside), seen))
        yield path, _readable(path, names)


def count_folders(root: Path) -> dict[str, dict[str, int]]:
    """For each split the number of files of each class; under "all" if there are no splits."""
    inside = subfolders(root)
    parts = {split_named(name): root / name for name in inside}
    if "train" in parts and None not in parts:
        return {str(name): _count(folder) for name, folder in parts.items()}
    if not inside:
        raise ValueError(
            f"{root} has no folders in it, expected one a class (root/class/file) or "
            "root/train/class/file; give the folder that holds the class folders"
        )
    return {WHOLE: _count(root)}


def _count(root: Path) -> dict[str, int]:
    names = subfolders(root)
    apart = [root, *(root / name for name in names)]
    counts = {
        name: sum(
            not file.startswith(".")
            for _, files in files_below(root / name, apart)
            for file in files
        )
        for name in names
    }
    if not any(counts.values()):
        raise ValueError(
            f"{root} has {len(counts)} class folders and no files in them; "
            "give the folder that holds the class folders"
        )
    return counts


def _readable(folder: str, names: list[str]) -> list[str]:
    """Without pipes, sockets and devices, on which a reader would wait for ever.

    A link that leads nowhere stays: whoever reads it says so.
    """
    with os.scandir(folder) as entries:
        others = {e.name for e in entries if not e.is_file() and os.path.exists(e.path)}
    return [name for name in names if name not in others]


def _new(folder: str, names: Iterable[str], seen: set[Identity]) -> Iterator[str]:
    for name in names:
        identity = _identity(os.path.join(folder, name))
        if identity not in seen:
            seen.add(identity)
            yield name


def _identity(path: str | os.PathLike[str]) -> Identity:
    status = os.stat(path)
    return status.st_dev, status.st_ino
