"""CIFAR-10 and CIFAR-100 from the official archives, binary or python, or from an npz file."""

import os
from collections.abc import Mapping
from pathlib import Path

from longtail.data.images.arrays import ImageArrays
from longtail.data.images.cifar.dictionaries import read_dictionary, read_meta
from longtail.data.images.cifar.layout import (
    ARCHIVES,
    PIXELS,
    TEST_IMAGES,
    TRAIN_IMAGES,
    Archive,
    LabelKind,
    Name,
    num_classes_of,
)
from longtail.data.images.cifar.members import read_members
from longtail.data.images.cifar.part import CifarPart, join
from longtail.data.images.cifar.records import read_names, read_records, record_size
from longtail.data.images.npz import read_npz_splits
from longtail.data.images.splits import ImageSplits

_MOST_NAMES = 2**20  # bytes of a file of class names


def read_cifar(
    source: str | os.PathLike[str],
    name: Name,
    labels: LabelKind = "fine",
    official: bool = True,
) -> ImageSplits[ImageArrays]:
    """The training and the test part, in the original order.

    Args:
        source: An official archive (.tar.gz), a folder with one in it, as `download_cifar` leaves
            it, or with its files, or an npz file with train_images, train_labels, test_images and
            test_labels.
        name: "cifar10" or "cifar100".
        labels: "fine", or "coarse" for the 20 superclasses of CIFAR-100. An npz file has those
            that were put into it.
        official: Whether all 60,000 images must be there, as many of each class; False reads any
            whole number of records, for samples of the set.
    """
    num_classes = num_classes_of(name, labels)
    place = Path(source)
    if place.suffix.lower() == ".npz":
        splits = read_npz_splits(place)
    else:
        splits = _read_archive(*_located(place, name), labels)
    if splits.train.num_classes != num_classes:
        raise ValueError(
            f"{place} has {splits.train.num_classes} classes, expected {num_classes} for {name} "
            f"with {labels} labels; give the name of the set it holds, and its kind of labels"
        )
    if official:
        _check_whole(splits.train, TRAIN_IMAGES, f"the training part of {place}")
        _check_whole(splits.test, TEST_IMAGES, f"the test part of {place}")
    return splits


def _located(place: Path, name: Name) -> tuple[Path, Archive]:
    """The archive or the folder of files, and which version it is."""
    versions = [archive for (of, _), archive in ARCHIVES.items() if of == name]
    if place.is_file():
        # Which version is in it is told by its name; under another name the binary one is looked
        # for, since it is the one that `download_cifar` fetches.
        called_python = "python" in place.name.lower() or "-py" in place.name.lower()
        return place, versions[1 if called_python else 0]
    for archive in versions:
        for folder in (place, place / archive.folder):
            if (folder / archive.test).is_file():
                return folder, archive
        if (place / archive.file_name).is_file():
            return place / archive.file_name, archive
    raise FileNotFoundError(
        f"there is no {name} in {place}: neither {versions[0].file_name} nor "
        f"{versions[1].file_name} nor their files; get it with download_cifar({name!r}, folder)"
    )


def _read_archive(place: Path, archive: Archive, labels: LabelKind) -> ImageSplits[ImageArrays]:
    files = read_members(place, archive.folder, _limits(archive, labels))
    meta = archive.names[labels]
    if archive.version == "binary":
        classes = read_names(files[meta])
    else:
        classes = read_meta(files[meta], archive.name, labels, f"{meta} of {place}")
    train = [_read_part(files, file, archive, labels, place) for file in archive.train]
    test = _read_part(files, archive.test, archive, labels, place)
    return ImageSplits(
        join(train, classes, f"the training part of {place}"),
        test=join([test], classes, f"the test part of {place}"),
    )


def _read_part(
    files: Mapping[str, bytes], file: str, archive: Archive, labels: LabelKind, place: Path
) -> CifarPart:
    read = read_records if archive.version == "binary" else read_dictionary
    return read(files[file], archive.name, labels, f"{file} of {place}")


def _limits(archive: Archive, labels: LabelKind) -> dict[str, int]:
    """The bytes that each file may have."""
    images = {file: TRAIN_IMAGES // len(archive.train) for file in archive.train}
    images[archive.test] = TEST_IMAGES
    # A pickle also has file names, and a pixel may be text there, of two bytes.
    extra = 0 if archive.version == "binary" else PIXELS + 200
    limits = {file: number * (record_size(archive.name) + extra) for file, number in images.items()}
    return {archive.names[labels]: _MOST_NAMES, **limits}


def _check_whole(images: ImageArrays | None, number: int, where: str) -> None:
    counts = [] if images is None else images.counts.tolist()
    if images is None or set(counts) != {number // len(counts)}:
        raise ValueError(
            f"{where} must have {number:,} images, as many of each class, got {sum(counts):,}, "
            f"{min(counts, default=0)} to {max(counts, default=0)} a class; download it again, or "
            "read a sample of the set with official=False"
        )
