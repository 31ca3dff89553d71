"""The images of a recipe, read from where they are: train, and validation and test if any."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from longtail.engine.training import FixedSize
from longtail.flows.train.data_sets import (
    Cifar10,
    Cifar20,
    Cifar100,
    CifarSet,
    Data,
    HuggingFace,
    ImageLists,
    OwnSet,
)
from longtail.flows.train.run_folder import check_data
from longtail.images import (
    ImageFiles,
    ImageSplits,
    LabelledImages,
    cifar_long_tailed,
    hold_out_validation,
    long_tailed_images,
    read_image_list,
    read_image_splits,
)
from longtail.images.hugging_face import read_hugging_face
from longtail.images.labelled import check_every_class

_SETS = {Cifar10: "cifar10", Cifar100: "cifar100", Cifar20: "cifar100"}


def read_data(data: Data) -> ImageSplits[Any]:
    """The parts of the set, cut and held out as the recipe says."""
    path = check_data(data)
    if isinstance(data, CifarSet):
        return cifar_long_tailed(
            path,
            _SETS[type(data)],  # type: ignore[arg-type]
            data.imbalance_ratio,
            data.profile,
            data.seed,
            data.held_out,
            labels="coarse" if isinstance(data, Cifar20) else "fine",
            official=data.official,
        )
    splits = _read(data, path)
    check_every_class(splits.train, f"the training part of {path}")
    if data.imbalance_ratio is not None:
        splits = long_tailed_images(
            splits, data.imbalance_ratio, data.profile, data.seed, data.held_out
        )
    else:
        splits = hold_out_validation(splits, data.held_out, data.seed)
    return _squares(splits, data)


def _read(data: OwnSet, path: str) -> ImageSplits[Any]:
    if isinstance(data, ImageLists):
        return _read_lists(data, Path(path))
    if isinstance(data, HuggingFace):
        return read_hugging_face(path, data.image_column, data.label_column)
    return read_image_splits(path)


def _read_lists(data: ImageLists, root: Path) -> ImageSplits[ImageFiles]:
    names = None if data.classes is None else os.fspath(root / data.classes)
    train = read_image_list(root / data.train, root, data.num_classes, names)

    def other(name: str) -> ImageFiles:
        # Its classes are those of training, whichever of them it has; a .json file says its own.
        known = None if name.endswith(".json") else names or train.classes
        return read_image_list(root / name, root, train.num_classes, known, allow_empty=True)

    others = {
        split: other(name)
        for split, name in (("validation", data.validation), ("test", data.test))
        if name is not None
    }
    return ImageSplits(train, others.get("validation"), others.get("test"))


def _squares(splits: ImageSplits[Any], data: OwnSet) -> ImageSplits[Any]:
    """Images of one size, training ones at random places if asked for."""
    if data.size is None:
        return splits
    size, resize = data.size, data.resize

    def square(images: LabelledImages | None) -> FixedSize | None:
        return None if images is None else FixedSize(images, size, resize)

    train = FixedSize(splits.train, size, resize, random=data.random_crop)
    return ImageSplits(train, square(splits.validation), square(splits.test))
