"""A folder with a subfolder a class: the layout of torchvision's ImageFolder.

The same classes in the same order, and the same images in the same order, but hidden files and
folders are left out, a folder that several links lead to counts once, and the parts of a set share
the classes of its training part.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from longtail.data.files.class_names import check_written
from longtail.data.files.walking import files_below
from longtail.data.images.files import ImageFiles
from longtail.data.images.present import check_every_class
from longtail.data.images.splits import ImageSplits
from longtail.data.label_files.splits import split_named

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def read_image_folder(root: str | os.PathLike[str], allow_empty: bool = False) -> ImageFiles:
    """The images of root/class/file; classes in the order of the alphabet.

    Args:
        root: The folder that holds the class folders.
        allow_empty: Whether a class folder may be without images.
    """
    place = Path(root)
    names = _folders(place)
    if "train" in map(split_named, names):
        raise ValueError(
            f"{place} has the folders {', '.join(names[:5])}, which are parts of a set and no "
            "classes; give one of them, or all to read_image_splits"
        )
    return _read(place, tuple(names), allow_empty)


def read_folder_splits(root: Path, allow_empty: bool) -> ImageSplits[ImageFiles]:
    """The images of root/train/class/file, and of val and test beside it where they are.

    Where there are no such parts, those of root/class/file, all of them for training.
    """
    parts: dict[str, Path] = {}
    for name in _folders(root):
        split = split_named(name)
        if split is not None and split in parts:
            raise ValueError(
                f"{root} has two folders for {split}, {parts[split].name} and {name}; "
                "take one of them away"
            )
        if split is not None:
            parts[split] = root / name
    if not parts:
        return ImageSplits(_read(root, tuple(_folders(root)), allow_empty), None, None)
    if "train" not in parts:
        there = ", ".join(folder.name for folder in parts.values())
        raise ValueError(
            f"{root} has {there} but no folder train; "
            "expected root/train/class/file with val and test beside it, or root/class/file"
        )
    train = _read(parts["train"], tuple(_folders(parts["train"])), allow_empty)
    others = {
        split: _read(folder, train.classes, allow_empty=True)
        for split, folder in parts.items()
        if split != "train"
    }
    return ImageSplits(train, others.get("validation"), others.get("test"))


def _read(root: Path, classes: tuple[str, ...], allow_empty: bool) -> ImageFiles:
    unknown = sorted(set(_folders(root)) - set(classes))
    if unknown:
        raise ValueError(
            f"{root} has the class {unknown[0]!r}, which the training part does not have; "
            "its images could never be recognised: take it away, or add it to training"
        )
    apart = [root, *(root / name for name in _folders(root))]
    paths: list[str] = []
    labels: list[int] = []
    for index, name in enumerate(classes):
        found = list(_images(root / name, apart))
        paths += found
        labels += [index] * len(found)
    if not paths:
        raise ValueError(
            f"{root} has {len(classes)} class folders and no images in them, expected "
            f"{root.name}/class/file with one of the endings {', '.join(EXTENSIONS)}; "
            "give the folder that holds the class folders"
        )
    images = ImageFiles(tuple(paths), torch.tensor(labels), classes)
    if not allow_empty:
        check_every_class(images, str(root))
    return images


def _folders(root: Path) -> list[str]:
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}; check the name")
    with os.scandir(root) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    check_written(names, str(root))
    return names


def _images(folder: Path, apart: Sequence[Path]) -> Iterator[str]:
    # All folders are sorted by path before their files are: torchvision's order.
    for place, names in sorted(files_below(folder, apart)):
        yield from (os.path.join(place, n) for n in sorted(names) if is_image(n))


def is_image(name: str) -> bool:
    """Whether the name has an ending of an image and is not hidden."""
    return name.lower().endswith(EXTENSIONS) and not os.path.basename(name).startswith(".")
