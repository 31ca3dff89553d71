"""Image sets in folders, a subfolder a class, and in .npz files, without pickles.

Folders are in the layout of torchvision's ImageFolder: the same classes in the same order, and the
same images in the same order, but hidden files and folders are left out, a folder that several
links lead to counts once, and the parts of a set share the classes of its training part. In a tree,
as SUN397 is, a folder of any depth that holds images is a class.

In an .npz images are uint8 arrays of shape (N, C, H, W) or (N, H, W, C). In a file of one set they
are called `images` (or x), their labels `labels` (or label, y); in a file of parts `train_images`
(or x_train, or just train) and `train_labels` (or train_label, y_train), and so for validation and
test. The class names, if there, are `classes` (or class_names, label_names).
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from longtail.core.score_checks import check_written
from longtail.data.tables.arrays import load_npz, npz_header, npz_names
from longtail.data.tables.label_codes import classes_of
from longtail.data.tables.labels import npz_labels
from longtail.data.tables.names import (
    SPLITS,
    WHOLE,
    by_split,
    files_below,
    split_named,
    subfolders,
)
from longtail.images.labelled import ImageArrays, ImageFiles, channels_first, check_every_class
from longtail.images.splits import ImageSplits

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def read_image_splits(
    source: str | os.PathLike[str], allow_empty: bool = False
) -> ImageSplits[ImageFiles] | ImageSplits[ImageArrays]:
    """The training part, and validation and test where they are, with the classes of training.

    The source is a folder with train, val and test in it, each with a folder a class, or an npz
    file with train_images, train_labels and so on. A folder of class folders is all training.
    `allow_empty` is for class folders of the training part.
    """
    root = Path(source)
    if root.suffix.lower() == ".npz":
        return read_npz_splits(root)
    names = by_split(_classes(root), root, "folders")
    parts = {split: root / name for split, name in names.items()}
    if not parts:
        return ImageSplits(read_image_folder(root, allow_empty))
    if "train" not in parts:
        there = ", ".join(folder.name for folder in parts.values())
        raise ValueError(
            f"{root} has {there} but no folder train; "
            "expected root/train/class/file with val and test beside it, or root/class/file"
        )
    folder = parts.pop("train")
    train = _read_folder(folder, _classes(folder), allow_empty)
    others = {split: _read_folder(each, train.classes, True) for split, each in parts.items()}
    return ImageSplits(train, others.get("validation"), others.get("test"))


def read_image_folder(root: str | os.PathLike[str], allow_empty: bool = False) -> ImageFiles:
    """The images of root/class/file; classes, which may be empty with `allow_empty`, sorted."""
    folder = Path(root)
    names = _classes(folder)
    if "train" in map(split_named, names):
        raise ValueError(
            f"{folder} has the folders {', '.join(names[:5])}, which are parts of a set and no "
            "classes; give one of them, or all to read_image_splits"
        )
    return _read_folder(folder, names, allow_empty)


def read_image_tree(root: str | os.PathLike[str]) -> ImageFiles:
    """All images below a folder; a class is a folder that holds images, by its path: a/abbey."""
    folder = Path(root)
    by_class = {
        Path(where).relative_to(folder).as_posix(): sorted(filter(is_image, names))
        for where, names in files_below(folder)
    }
    classes = sorted(name for name, files in by_class.items() if files)
    if not classes:
        raise ValueError(
            f"{folder} has no images below it, expected files with one of the endings "
            f"{', '.join(EXTENSIONS)}; give the folder that the set was unpacked to"
        )
    paths = tuple(os.path.join(folder, name, file) for name in classes for file in by_class[name])
    labels = [at for at, name in enumerate(classes) for _ in by_class[name]]
    return ImageFiles(paths, torch.tensor(labels), tuple(classes))


def read_image_npz(path: str | os.PathLike[str]) -> ImageArrays:
    """The images and labels of a file that holds one set, under `images` and `labels`."""
    parts = _read_npz(Path(path))
    if WHOLE not in parts:
        raise ValueError(
            f"{path} has the parts {', '.join(parts)}; read them all with read_image_splits"
        )
    return parts[WHOLE]


def read_npz_splits(path: Path) -> ImageSplits[ImageArrays]:
    """The parts of a file that holds a training part, under `train_images` and `train_labels`."""
    parts = _read_npz(path)
    if "train" not in parts:
        raise ValueError(
            f"{path} has no training part, expected train_images and train_labels; of a file with "
            "images and labels make ImageSplits(read_image_npz(path)) or hold a test part out"
        )
    return ImageSplits(parts["train"], parts.get("validation"), parts.get("test"))


def is_image(name: str) -> bool:
    """Whether the name has an ending of an image and is not hidden."""
    return name.lower().endswith(EXTENSIONS) and not os.path.basename(name).startswith(".")


def _read_folder(root: Path, classes: tuple[str, ...], allow_empty: bool) -> ImageFiles:
    inside = _classes(root)
    unknown = sorted(set(inside) - set(classes))
    if unknown:
        raise ValueError(
            f"{root} has the class {unknown[0]!r}, which the training part does not have; "
            "its images could never be recognised: take it away, or add it to training"
        )
    apart = [root, *(root / name for name in inside)]
    paths: list[str] = []
    labels: list[int] = []
    for index, name in enumerate(classes):
        # All folders are sorted by path before their files are: torchvision's order.
        for folder, names in sorted(files_below(root / name, apart)):
            paths += (os.path.join(folder, each) for each in sorted(names) if is_image(each))
        labels += [index] * (len(paths) - len(labels))
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


def _classes(root: Path) -> tuple[str, ...]:
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}; check the name")
    names = tuple(subfolders(root))
    check_written(names, str(root))
    return names


def _read_npz(path: Path) -> dict[str, ImageArrays]:
    labels, names = npz_labels(path)
    values = {value for part in labels.values() for value in part.values}
    samples = sum(len(part.codes) for part in labels.values())
    classes = names or classes_of(values, samples, str(path))  # the same for each part
    called = {split: _images_name(npz_names(path), split, path) for split in labels}
    for split, name in called.items():
        # Before anything is unpacked that could not be the images of so many labels.
        header, number = npz_header(path, name), len(labels[split].codes)
        if header.dtype != np.uint8 or len(header.shape) != 4 or header.shape[0] != number:
            raise ValueError(
                f"{name!r} of {path} must be uint8 (0 to 255) of shape (N, C, H, W) or "
                f"(N, H, W, C) with N = {number}, a label for each image, got {header.dtype} of "
                f"shape {header.shape}; convert them first"
            )
    arrays = load_npz(path, called.values())
    return {
        split: ImageArrays(
            channels_first(torch.from_numpy(np.ascontiguousarray(arrays[called[split]]))),
            torch.from_numpy(codes.as_indices(len(classes), classes, f"labels of {path}")),
            classes,
        )
        for split, codes in labels.items()
    }


def _images_name(names: Sequence[str], split: str, path: Path) -> str:
    spelled = [spelling for spelling, ours in SPLITS.items() if ours == split]
    usual = [f"{spelling}_images" for spelling in spelled]
    usual += [f"x_{spelling}" for spelling in spelled] + spelled
    wanted = ["images", "x"] if split == WHOLE else usual
    chosen = next((name for name in wanted if name in names), None)
    if chosen is None:
        raise ValueError(
            f"{path} has labels but no images {wanted[0]!r}, only {', '.join(sorted(names))}; "
            "rename the array"
        )
    return chosen
