"""Class counts of a folder with a subfolder a class, as ImageFolder reads it.

Either root/class/file, or root/train/class/file with val and test beside it. Hidden files and
folders do not count; files in folders below a class do, each folder once, whatever links lead to
it.
"""

from collections.abc import Sequence
from pathlib import Path

from longtail.data.files.walking import files_below, subfolders
from longtail.data.label_files.splits import WHOLE, split_named


def count_folders(root: Path) -> dict[str, dict[str, int]]:
    """For each split the number of files of each class; under "all" if there are no splits."""
    inside = _folders(root)
    parts = {split_named(folder.name): folder for folder in inside}
    if "train" in parts and None not in parts:
        return {str(name): _count(folder) for name, folder in parts.items()}
    if not inside:
        raise ValueError(
            f"{root} has no folders in it, expected one a class (root/class/file) or "
            "root/train/class/file; give the folder that holds the class folders"
        )
    return {WHOLE: _count(root)}


def _count(root: Path) -> dict[str, int]:
    folders = _folders(root)
    counts = {folder.name: _number(folder, [root, *folders]) for folder in folders}
    if not any(counts.values()):
        raise ValueError(
            f"{root} has {len(counts)} class folders and no files in them; "
            "give the folder that holds the class folders"
        )
    return counts


def _folders(root: Path) -> list[Path]:
    return [root / name for name in subfolders(root)]


def _number(folder: Path, apart: Sequence[Path]) -> int:
    found = files_below(folder, apart)
    return sum(not name.startswith(".") for _, names in found for name in names)
