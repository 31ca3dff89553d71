"""Images and labels in .npz files, without pickles.

Images are uint8 arrays of shape (N, C, H, W) or (N, H, W, C). In a file of one set they are called
`images` (or x), their labels `labels` (or label, y); in a file of parts `train_images` (or x_train,
or just train) and `train_labels` (or train_label, y_train), and so for validation and test. The
class names, if there, are `classes` (or class_names, label_names).
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from longtail.core.labels import check_num_classes
from longtail.data.files.arrays import ArrayHeader, load_npz, npz_header, npz_names
from longtail.data.files.label_codes import LabelCodes, are_whole_numbers
from longtail.data.images.arrays import ImageArrays, channels_first
from longtail.data.images.splits import ImageSplits
from longtail.data.label_files.arrays import npz_labels
from longtail.data.label_files.splits import SPLITS, WHOLE


def read_image_npz(path: str | os.PathLike[str]) -> ImageArrays:
    """The images and labels of a file that holds one set, under `images` and `labels`."""
    parts = _read(Path(path))
    if WHOLE not in parts:
        raise ValueError(
            f"{path} has the parts {', '.join(parts)}; read them all with read_image_splits"
        )
    return parts[WHOLE]


def read_npz_splits(path: Path) -> ImageSplits[ImageArrays]:
    """The parts of a file that holds a training part, under `train_images` and `train_labels`."""
    parts = _read(path)
    if "train" not in parts:
        raise ValueError(
            f"{path} has no training part, expected train_images and train_labels; of a file with "
            "images and labels make ImageSplits(read_image_npz(path)) or hold a test part out"
        )
    return ImageSplits(parts["train"], parts.get("validation"), parts.get("test"))


def _read(path: Path) -> dict[str, ImageArrays]:
    labels, names = npz_labels(path)
    classes = names or _numbered(labels, path)
    stored = npz_names(path)
    called = {split: _images_name(stored, split, path) for split in labels}
    for split, found in labels.items():
        _check_header(npz_header(path, called[split]), len(found.codes), called[split], path)
    arrays = load_npz(path, called.values())
    return {
        split: ImageArrays(
            channels_first(torch.from_numpy(np.ascontiguousarray(arrays[called[split]]))),
            torch.from_numpy(found.as_indices(len(classes), classes, f"labels of {path}")),
            classes,
        )
        for split, found in labels.items()
    }


def _check_header(header: ArrayHeader, labels: int, name: str, path: Path) -> None:
    """Raise before anything is unpacked that could not be the images of so many labels."""
    if header.dtype != np.uint8 or len(header.shape) != 4 or header.shape[0] != labels:
        raise ValueError(
            f"{name!r} of {path} must be uint8 (0 to 255) of shape (N, C, H, W) or (N, H, W, C) "
            f"with N = {labels}, a label for each image, got {header.dtype} of shape "
            f"{header.shape}; convert them first"
        )


def _numbered(labels: dict[str, LabelCodes], path: Path) -> tuple[str, ...]:
    """The classes of all parts if nobody names them: the same for each, up to the largest label."""
    values = {value for part in labels.values() for value in part.values}
    if are_whole_numbers(values):
        samples = sum(len(part.codes) for part in labels.values())
        number = max(*map(int, values), 0) + 1
        return tuple(map(str, range(check_num_classes(number, samples, f"labels of {path}"))))
    return tuple(sorted(values))


def _images_name(names: Sequence[str], split: str, path: Path) -> str:
    spelled = [spelling for spelling, ours in SPLITS.items() if ours == split]
    usual = [f"{spelling}_images" for spelling in spelled]
    usual += [f"x_{spelling}" for spelling in spelled] + spelled
    wanted = ["images", "x"] if split == WHOLE else usual
    found = next((name for name in wanted if name in names), None)
    if found is None:
        raise ValueError(
            f"{path} has labels but no images {wanted[0]!r}, only {', '.join(sorted(names))}; "
            "rename the array"
        )
    return found
