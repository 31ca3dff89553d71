"""Images and labels in the columns of a `datasets.Dataset`, one split or all of a set.

`from_hugging_face` imports nothing: whatever looks like such a dataset will do. `read_hugging_face`
needs `pip install longtail[hf]`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.data.tables.label_codes import LabelCodes, classes_of
from longtail.images.decoding import as_rgb, naming_the_image, opened
from longtail.images.labelled import LabelledImages, check_positions
from longtail.images.splits import ImageSplits


@dataclass(frozen=True, eq=False)
class HuggingFaceImages(LabelledImages):
    """Rows of a `datasets.Dataset` as labelled images; made by `from_hugging_face`."""

    rows: Any
    image_column: str
    labels: Tensor
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._settle_labels()

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image in RGB as uint8 of shape (3, H, W), and its label."""
        label = int(self.labels[index])  # before the row, so that its IndexError ends a loop
        with naming_the_image(f"in row {index} of column {self.image_column!r}"):
            return _decoded(self.rows[index][self.image_column]), label

    def subset(self, positions: ArrayLike) -> HuggingFaceImages:
        """The images at these positions, in this order, with the same classes."""
        at = check_positions(positions, len(self))
        return replace(self, rows=self.rows.select(at.tolist()), labels=self.labels[at])


def from_hugging_face(
    dataset: Any,
    image_column: str = "image",
    label_column: str = "label",
    classes: Sequence[str] | None = None,
) -> HuggingFaceImages:
    """The images of one split of a `datasets.Dataset`, decoded when they are asked for.

    Labels are class indices, named by the column's ClassLabel if it has one, or class names, which
    are put in the order of the alphabet. `classes` are their names where the column has no
    ClassLabel: those of the training split for another one, which may lack some of them.
    """
    names = getattr(dataset, "column_names", None)
    if isinstance(names, dict):
        raise ValueError(
            f"expected one split, got a dictionary of {', '.join(names)}; give one of them, as "
            f"dataset[{next(iter(names), 'train')!r}]"
        )
    if not isinstance(names, list) or not hasattr(dataset, "__len__"):
        raise ValueError(
            f"expected a datasets.Dataset, got a {type(dataset).__name__}; load it without "
            "streaming, and give one split"
        )
    for column in (image_column, label_column):
        if column not in names:
            raise ValueError(
                f"the dataset has no column {column!r}, only {', '.join(names)}; say with "
                "image_column and label_column which ones hold the images and the labels"
            )
    # A format, of torch for example, would turn the images into something else.
    plain = dataset.with_format(None)
    return HuggingFaceImages(plain, image_column, *_labels(plain, label_column, classes))


def read_hugging_face(
    path: str, image_column: str = "image", label_column: str = "label"
) -> ImageSplits[Any]:
    """The parts of a folder that `save_to_disk` wrote, or of what `datasets.load_dataset` takes."""
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise ImportError("the package datasets is missing: pip install longtail[hf]") from error
    stored = (Path(path) / "dataset_dict.json").is_file()
    splits = datasets.load_from_disk(path) if stored else datasets.load_dataset(path)
    if "train" not in splits:
        raise ValueError(f"the data set {path} has no train split, only {', '.join(splits)}")
    columns = (image_column, label_column)
    train = from_hugging_face(splits["train"], *columns)

    def read(*names: str) -> HuggingFaceImages | None:
        name = next((name for name in names if name in splits), None)
        return None if name is None else from_hugging_face(splits[name], *columns, train.classes)

    return ImageSplits(train, read("validation", "val", "valid", "dev"), read("test"))


def _labels(
    dataset: Any, column: str, classes: Sequence[str] | None
) -> tuple[Tensor, tuple[str, ...]]:
    values, where = list(dataset[column]), f"column {column!r}"
    absent = next((row for row, value in enumerate(values) if value is None or value == -1), None)
    if absent is not None:
        raise ValueError(
            f"{where} has no label in row {absent}; leave such rows out with "
            "dataset.filter, or take a split that has labels"
        )
    codes = LabelCodes.of_array(np.array(values), where)
    named = getattr(dataset.features[column], "names", None)
    names = classes if named is None else named
    names = classes_of(codes.values, len(values), where) if names is None else tuple(names)
    return torch.from_numpy(codes.as_indices(len(names), names, where)), names


def _decoded(image: Any) -> Tensor:
    """From a Pillow image, or from what there is where decoding was switched off."""
    if isinstance(image, dict):
        stored = image.get("bytes")
        with opened(image["path"] if stored is None else io.BytesIO(stored)) as file:
            return as_rgb(file)
    if not hasattr(image, "convert"):
        raise ValueError(f"it is a {type(image).__name__}: cast the column to datasets.Image()")
    return as_rgb(image)
