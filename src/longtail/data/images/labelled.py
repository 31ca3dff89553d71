"""What every set of labelled images has in common, wherever its pixels are."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor
from torch.utils.data import Dataset

from longtail.core.arrays import ArrayLike
from longtail.core.labels import check_num_classes, class_counts
from longtail.core.tensors import as_tensor, label_tensor
from longtail.data.files.class_names import check_written


class LabelledImages(Dataset[tuple[Tensor, int]]):
    """A map-style dataset of (image, label) that knows its labels without reading an image.

    Attributes:
        labels: The class of each image, int64.
        classes: The name of each class. Classes without names are called by their numbers.
    """

    labels: Tensor
    classes: tuple[str, ...]

    @abstractmethod
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image as uint8 of shape (C, H, W), and its label."""

    @abstractmethod
    def subset(self, positions: ArrayLike) -> Self:
        """The images at these positions, in this order, with the same classes."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def targets(self) -> Tensor:
        """The labels, by the name that torchvision's datasets give them."""
        return self.labels

    @property
    def num_classes(self) -> int:
        """How many classes there are, with or without images."""
        return len(self.classes)

    @property
    def counts(self) -> Tensor:
        """How many images each class has."""
        return as_tensor(class_counts(self.labels, self.num_classes))

    def _settle_labels(self) -> None:
        """Check labels and classes, and name the classes if nobody has."""
        labels = as_tensor(self.labels)
        names = tuple(self.classes or map(str, range(_number_of_classes(labels))))
        check_names(names)
        # The values are frozen; what is set here is what they were given, in its final type.
        object.__setattr__(self, "classes", names)
        object.__setattr__(self, "labels", label_tensor(labels, len(names)))


def check_names(names: Sequence[str]) -> None:
    """A ValueError if a name stands for two classes, or is no text."""
    check_written(names, "the set")
    if len(set(names)) != len(names):
        twice, number = Counter(names).most_common(1)[0]
        raise ValueError(
            f"classes must name each class once, got {twice!r} {number} times; rename them"
        )


def check_positions(positions: ArrayLike, length: int) -> Tensor:
    """Positions into a set of this length as int64, or a ValueError."""
    given = as_tensor(positions)
    if given.shape == (0,):
        return given.long()
    if given.dim() != 1 or given.dtype == torch.bool or given.is_floating_point():
        raise ValueError(
            f"positions must be a list of whole numbers, got {given.dtype} of shape "
            f"{tuple(given.shape)}; of a mask take mask.nonzero()"
        )
    given = given.long().cpu()
    wrong = (given < 0) | (given >= length)
    if wrong.any():
        raise ValueError(
            f"positions must lie in 0 to {length - 1} for {length} images, "
            f"got {int(given[wrong][0])}; they were made for another set"
        )
    return given


def _number_of_classes(labels: Tensor) -> int:
    if not labels.numel():
        raise ValueError("a set without images must say its classes; give their names")
    return check_num_classes(max(int(labels.max()) + 1, 1), len(labels))
