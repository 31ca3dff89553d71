"""CIFAR-10 and CIFAR-100 from the official archives, binary or python, and long-tailed cuts.

A record of the binary version is a label (CIFAR-100: the coarse one and the fine one) and 3072
pixels, 32 rows of 32, red, then green, then blue. The dictionaries of the python version are read
without unpickling.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from longtail.data.tables.pickled import ByteArray, read_plain_data
from longtail.images.cifar_files import ARCHIVES, DAMAGED, Archive, LabelKind, Name, read_files
from longtail.images.folders import read_npz_splits
from longtail.images.labelled import ImageArrays
from longtail.images.splits import ImageSplits, Profile, long_tailed_images

# Uint8 images of shape (N, 3, 32, 32) and their int64 labels, as a file has them.
CifarPart: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

_PIXELS = 3 * 32 * 32
_TRAIN_IMAGES, _TEST_IMAGES = 50_000, 10_000
_NUM_CLASSES: dict[tuple[Name, LabelKind], int] = {
    ("cifar10", "fine"): 10,
    ("cifar100", "fine"): 100,
    ("cifar100", "coarse"): 20,
}
# The bytes of a record of the binary version that are labels, before its pixels.
_LABEL_COLUMNS: dict[Name, dict[LabelKind, int]] = {
    "cifar10": {"fine": 0},
    "cifar100": {"coarse": 0, "fine": 1},
}


def cifar_long_tailed(
    source: str | os.PathLike[str],
    name: Name = "cifar100",
    imbalance_ratio: float = 100,
    profile: Profile = "exp",
    seed: int = 0,
    validation_share: float = 0.1,
    labels: LabelKind = "fine",
    official: bool = True,
) -> ImageSplits[ImageArrays]:
    """CIFAR-10-LT, CIFAR-100-LT or, with coarse labels, CIFAR-20-LT; the test part is whole.

    With seed 0 the training and the validation part together are the images of the widely used
    published builder: 12,406 of CIFAR-10 and 10,847 of CIFAR-100 at ratio 100. Published figures
    train on all of them, validation_share=0, and often choose by the test part. `read_cifar` and
    `long_tailed_images` explain the arguments.
    """
    whole = read_cifar(source, name, labels, official)
    return long_tailed_images(whole, imbalance_ratio, profile, seed, validation_share)


def read_cifar(
    source: str | os.PathLike[str], name: Name, labels: LabelKind = "fine", official: bool = True
) -> ImageSplits[ImageArrays]:
    """The training and the test part, in the original order.

    The source is an official archive (.tar.gz), a folder with one in it, as `download_cifar` leaves
    it, or with its files, or an npz file with train_images, train_labels, test_images, test_labels.
    Coarse labels are the 20 superclasses of CIFAR-100. `official` asks for all 60,000 images, as
    many of each class; False reads any whole number of records, for samples of the set.
    """
    if (name, labels) not in _NUM_CLASSES:
        raise ValueError(
            'name must be "cifar10" or "cifar100", labels "fine" or "coarse", and CIFAR-10 has no '
            f"coarse labels; got {name!r} with {labels!r}"
        )
    path, num_classes = Path(source), _NUM_CLASSES[name, labels]
    is_npz = path.suffix.lower() == ".npz"
    splits = read_npz_splits(path) if is_npz else _read_archive(*_located(path, name), labels)
    if splits.train.num_classes != num_classes:
        raise ValueError(
            f"{path} has {splits.train.num_classes} classes, expected {num_classes} for {name} "
            f"with {labels} labels; give the name of the set it holds, and its kind of labels"
        )
    if official:
        _check_whole(splits.train, _TRAIN_IMAGES, f"the training part of {path}")
        _check_whole(splits.test, _TEST_IMAGES, f"the test part of {path}")
    return splits


def _located(path: Path, name: Name) -> tuple[Path, Archive]:
    """The archive or the folder of files, and which version it is."""
    versions = ARCHIVES[name, "binary"], ARCHIVES[name, "python"]
    if path.is_file():
        # Which version is in it is told by its name; under another name the binary one is looked
        # for, since it is the one that `download_cifar` fetches.
        called_python = "python" in path.name.lower() or "-py" in path.name.lower()
        return path, versions[called_python]
    for archive in versions:
        for folder in (path, path / archive.folder):
            if (folder / archive.images[-1]).is_file():
                return folder, archive
        if (path / archive.file_name).is_file():
            return path / archive.file_name, archive
    raise FileNotFoundError(
        f"there is no {name} in {path}: neither {versions[0].file_name} nor "
        f"{versions[1].file_name} nor their files; get it with download_cifar({name!r}, folder)"
    )


def _read_archive(path: Path, archive: Archive, labels: LabelKind) -> ImageSplits[ImageArrays]:
    meta = archive.names(labels)
    files = read_files(path, archive.folder, [meta, *archive.images])
    if archive.version == "binary":
        read = read_records
        classes = tuple(files[meta].decode("ascii", "replace").split())
    else:
        read = read_dictionary
        classes = read_meta(files[meta], archive.name, labels, f"{meta} of {path}")

    def join(names: Sequence[str], part: str) -> ImageArrays:
        parts = [read(files[file], archive.name, labels, f"{file} of {path}") for file in names]
        images, indices = (np.concatenate(each) for each in zip(*parts, strict=True))
        wrong = indices >= len(classes)
        if wrong.any():
            at = int(wrong.argmax())
            raise ValueError(
                f"the {part} part of {path} has the label {indices[at]} at image {at}, expected 0 "
                f"to {len(classes) - 1}; {DAMAGED}"
            )
        return ImageArrays(torch.from_numpy(images), torch.from_numpy(indices), classes)

    *train, test = archive.images
    return ImageSplits(join(train, "training"), test=join([test], "test"))


def _check_whole(images: ImageArrays | None, number: int, where: str) -> None:
    counts = [] if images is None else images.counts.tolist()
    if images is None or set(counts) != {number // len(counts)}:
        raise ValueError(
            f"{where} must have {number:,} images, as many of each class, got {sum(counts):,}, "
            f"{min(counts, default=0)} to {max(counts, default=0)} a class; download it again, or "
            "read a sample of the set with official=False"
        )


def read_records(data: bytes, name: Name, labels: LabelKind, where: str) -> CifarPart:
    """A file of the binary version: a byte a label and 3072 bytes of pixels for each image."""
    columns = _LABEL_COLUMNS[name]
    size = len(columns) + _PIXELS
    if not data or len(data) % size:
        raise ValueError(
            f"{where} has {len(data):,} bytes, no whole number of records of {size}; {DAMAGED}"
        )
    records: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8).reshape(-1, size)
    images = records[:, len(columns) :].reshape(-1, 3, 32, 32)
    return images, records[:, columns[labels]].astype(np.int64)


def read_dictionary(data: bytes, name: Name, labels: LabelKind, where: str) -> CifarPart:
    """A file of the python version: a dictionary with an array of pixels and lists of labels."""
    key = "labels" if name == "cifar10" else f"{labels}_labels"
    entries = _entries(data, where)
    array, classes = entries.get("data"), entries.get(key)
    pixels = array.values if isinstance(array, ByteArray) else None
    numbers = classes if isinstance(classes, list) else []
    valid = all(type(label) is int and 0 <= label < _NUM_CLASSES[name, labels] for label in numbers)
    if pixels is None or pixels.shape != (len(numbers), _PIXELS) or not valid:
        raise ValueError(
            f"{where} must have rows of {_PIXELS} bytes as data and a class number for each as "
            f"{key}, got {', '.join(sorted(entries)[:8])}; {DAMAGED}"
        )
    return pixels.reshape(-1, 3, 32, 32), np.array(numbers, dtype=np.int64)


def read_meta(data: bytes, name: Name, labels: LabelKind, where: str) -> tuple[str, ...]:
    """The class names of the python version."""
    key = "label_names" if name == "cifar10" else f"{labels}_label_names"
    names = _entries(data, where).get(key)
    if not isinstance(names, list) or not all(isinstance(text, str | bytes) for text in names):
        raise ValueError(f"{where} must have a list of texts as {key}; {DAMAGED}")
    return tuple(map(_text, names))


def _entries(data: bytes, where: str) -> dict[str, Any]:
    stored = read_plain_data(data, where)
    if not isinstance(stored, dict):
        raise ValueError(f"{where} must hold a dictionary, got {type(stored).__name__}; {DAMAGED}")
    return {_text(key): value for key, value in stored.items()}


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
