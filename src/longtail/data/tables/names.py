"""What classes, and the parts of a data set, are called: in lists, and as folders.

Class folders are root/class/file, or root/train/class/file with val and test beside it. Links are
followed, but each folder counts once, whatever leads to it. Hidden files and folders do not count.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from longtail.data.tables.text import lines_of, read_json, suffix_of

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


def by_split(
    names: Iterable[str],
    where: object,
    what: str,
    split_of: Callable[[str], str | None] = split_named,
) -> dict[str, str]:
    """Of each split its name; those of none are left out, and two of one are a ValueError."""
    chosen: dict[str, str] = {}
    for name in names:
        split = split_of(name)
        if split is not None and chosen.setdefault(split, name) != name:
            raise ValueError(
                f"{where} has two {what} for {split}, {chosen[split]} and {name}; "
                "take one of them away"
            )
    return chosen


def read_class_names(path: Path) -> tuple[str, ...]:
    """The names in a JSON list, or in text with a name a line, in the order of the classes."""
    if suffix_of(path) == ".json":
        decoder = msgspec.json.Decoder(tuple[str, ...])
        names = read_json(path, decoder, "a JSON list of class names")
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


def subfolders(folder: Path) -> list[str]:
    """The names of the folders in a folder, in the order of the alphabet; no hidden ones."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))


def files_below(folder: Path, apart: Iterable[Path] = ()) -> Iterator[tuple[str, list[str]]]:
    """Each folder from this one down with the names of its files.

    Folders that are `apart`, such as those beside it, are left out though a link may lead there.
    """
    seen = {_identity(path) for path in apart}
    for path, inside, names in os.walk(folder, followlinks=True):
        seen.add(_identity(path))
        shown, inside[:] = sorted(name for name in inside if not name.startswith(".")), []
        for name in shown:
            identity = _identity(os.path.join(path, name))
            if identity not in seen:
                seen.add(identity)
                inside.append(name)
        yield path, _readable(path, names)


def count_folders(root: Path) -> dict[str, dict[str, int]]:
    """For each split the number of files of each class; under "all" if there are no splits."""
    inside = subfolders(root)
    splits = list(map(split_named, inside))
    if "train" in splits and None not in splits:
        parts = by_split(inside, root, "folders")
        return {split: _count(root / name) for split, name in parts.items()}
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


def _identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
