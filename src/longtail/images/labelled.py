"""Labelled images in memory (`ImageArrays`) or in files (`ImageFiles`), and labels of any set."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from longtail.core.arrays import ArrayLike
from longtail.core.labels import check_num_classes
from longtail.core.score_checks import check_written
from longtail.core.tensors import as_tensor, label_tensor
from longtail.data.tables.label_codes import first_few
from longtail.images.decoding import decode_file, verify_file

_CHANNELS = (1, 3, 4)


class LabelledImages(Dataset[tuple[Tensor, int]]):
    """A map-style dataset of (image, label) that knows its labels, int64, without reading an image.

    Classes without names are called by their numbers.
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
        return torch.bincount(self.labels, minlength=self.num_classes)

    def _settle_labels(self) -> None:
        """Check labels and classes, and name the classes if nobody has."""
        labels, names = as_tensor(self.labels), tuple(self.classes)
        if not (names or labels.numel()):
            raise ValueError("a set without images must say its classes; give their names")
        if not names:
            number = check_num_classes(max(int(labels.max()) + 1, 1), len(labels))
            names = tuple(map(str, range(number)))
        check_written(names, "the set")
        if len(set(names)) != len(names):
            twice, times = Counter(names).most_common(1)[0]
            raise ValueError(
                f"classes must name each class once, got {twice!r} {times} times; rename them"
            )
        # The values are frozen; what is set here is what they were given, in its final type.
        object.__setattr__(self, "classes", names)
        object.__setattr__(self, "labels", label_tensor(labels, len(names)))

    def _check_number(self, number: int, what: str) -> None:
        if number != len(self):
            raise ValueError(f"there must be a label for each of {number} {what}, got {len(self)}")


@dataclass(frozen=True, eq=False)
class ImageArrays(LabelledImages):
    """Images of one size, as those of CIFAR, uint8 of shape (N, C, H, W), and their labels.

    >>> pixels = torch.zeros(3, 3, 32, 32, dtype=torch.uint8)
    >>> images = ImageArrays(pixels, [0, 1, 0], ("cat", "fox"))
    >>> images.counts.tolist(), images.subset([2, 1]).targets.tolist()
    ([2, 1], [0, 1])
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._settle_labels()
        pixels = as_tensor(self.images)
        if pixels.dtype != torch.uint8 or pixels.dim() != 4 or channels_first(pixels) is not pixels:
            raise ValueError(
                "images must be uint8 (0 to 255) of shape (N, C, H, W), "
                f"got {pixels.dtype} of shape {tuple(pixels.shape)}; convert them first, (N, H, W, "
                "C) with images.permute(0, 3, 1, 2), in NumPy images.transpose(0, 3, 1, 2)"
            )
        self._check_number(len(pixels), "images")
        object.__setattr__(self, "images", pixels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image as uint8 of shape (C, H, W), and its label."""
        return self.images[index], int(self.labels[index])

    def subset(self, positions: ArrayLike) -> ImageArrays:
        """A copy of the images at these positions, in this order, with the same classes."""
        at = check_positions(positions, len(self))
        return replace(self, images=self.images[at], labels=self.labels[at])


@dataclass(frozen=True, eq=False)
class ImageFiles(LabelledImages):
    """Paths of images and their labels; each image is decoded, by Pillow, when it is asked for.

    `read_image_folder` and `read_image_list` make it; `check_images` finds damaged files.

    >>> files = ImageFiles(("a/1.jpg", "b/1.jpg", "a/2.jpg"), [0, 1, 0], ("a", "b"))
    >>> len(files), files.subset([1]).paths, files.subset([1]).counts.tolist()
    (3, ('b/1.jpg',), [0, 1])
    """

    paths: tuple[str, ...]
    labels: Tensor
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._settle_labels()
        object.__setattr__(self, "paths", tuple(map(str, self.paths)))
        self._check_number(len(self.paths), "paths")

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image in RGB as uint8 of shape (3, H, W), and its label."""
        return decode_file(self.paths[index]), int(self.labels[index])

    def subset(self, positions: ArrayLike) -> ImageFiles:
        """The images at these positions, in this order, with the same classes."""
        at = check_positions(positions, len(self))
        paths = tuple(self.paths[index] for index in at.tolist())
        return replace(self, paths=paths, labels=self.labels[at])


@dataclass(frozen=True)
class BrokenImage:
    """An image that cannot be read: where it stands in the set, its file, what reading it says."""

    position: int
    path: str
    reason: str


def check_images(files: ImageFiles, decode: bool = False) -> tuple[BrokenImage, ...]:
    """The images that are missing or damaged, found before a training run finds them.

    Unless every pixel is decoded, only headers are read and, where the format has them (PNG),
    checksums; that finds empty files and files of another kind, but not the half of a JPEG.

    >>> check_images(ImageFiles(("nowhere.png",), [0]))[0].reason
    'there is no image nowhere.png; was it moved or deleted?'
    """
    broken = []
    for position, path in enumerate(files.paths):
        try:
            decode_file(path) if decode else verify_file(path)
        except (ValueError, OSError) as error:
            broken.append(BrokenImage(position, path, str(error)))
    return tuple(broken)


def check_every_class(images: LabelledImages, where: str) -> None:
    """A ValueError that says how many classes have no image, and the first few."""
    empty = [images.classes[at] for at in (images.counts == 0).nonzero().flatten().tolist()]
    if empty:
        raise ValueError(
            f"{len(empty)} of the {images.num_classes} classes of {where} have no image: "
            f"{first_few(map(repr, empty))}; "
            "add images, or leave such classes out (in Python, allow_empty=True keeps them)"
        )


def check_positions(positions: ArrayLike, length: int) -> Tensor:
    """Positions into a set of this length as int64, or a ValueError."""
    checked = as_tensor(positions)
    if checked.shape == (0,):
        return checked.long()
    if checked.dim() != 1 or checked.dtype == torch.bool or checked.is_floating_point():
        raise ValueError(
            f"positions must be a list of whole numbers, got {checked.dtype} of shape "
            f"{tuple(checked.shape)}; of a mask take mask.nonzero()"
        )
    checked = checked.long().cpu()
    wrong = (checked < 0) | (checked >= length)
    if wrong.any():
        raise ValueError(
            f"positions must lie in 0 to {length - 1} for {length} images, "
            f"got {int(checked[wrong][0])}; they were made for another set"
        )
    return checked


def channels_first(images: Tensor) -> Tensor:
    """Images of shape (N, C, H, W); those of shape (N, H, W, C) are turned."""
    is_last = images.shape[3] in _CHANNELS and images.shape[1] not in _CHANNELS
    return images.permute(0, 3, 1, 2).contiguous() if is_last else images


def labels_of(dataset: Dataset[Any]) -> Tensor:
    """The label of each sample as int64, in the order of the dataset.

    Read through Subset and ConcatDataset, however nested, from `targets`, `labels` or `samples`,
    in this order, or from the last tensor of a TensorDataset. A `target_transform` is applied, as
    the dataset itself does when a sample is read.

    >>> data = TensorDataset(torch.zeros(4, 2), torch.tensor([3, 1, 2, 0]))
    >>> labels_of(Subset(data, [2, 0]) + Subset(data, [1]))
    tensor([2, 3, 1])
    """
    if isinstance(dataset, Subset):
        return labels_of(dataset.dataset)[torch.as_tensor(list(dataset.indices), dtype=torch.long)]
    if isinstance(dataset, ConcatDataset):
        return torch.cat([labels_of(part) for part in dataset.datasets])
    if isinstance(dataset, TensorDataset):
        return _checked_labels(dataset.tensors[-1], "last tensor", dataset)
    for name in ("targets", "labels", "samples"):
        values = getattr(dataset, name, None)
        if values is not None:
            values = [sample[1] for sample in values] if name == "samples" else values
            return _checked_labels(values, name, dataset)
    raise ValueError(
        f"the labels of a {type(dataset).__name__} are not known: it has no targets, labels or "
        "samples; give it an attribute targets with a class index for each sample, or read "
        "them with torch.tensor([label for _, label in dataset])"
    )


def _checked_labels(values: Any, name: str, dataset: Any) -> Tensor:
    where = f"the {name} of a {type(dataset).__name__}"
    transform = getattr(dataset, "target_transform", None)
    try:
        if transform is not None:
            values = [int(transform(value)) for value in values]
        tensor = as_tensor(values).cpu()
        labels = label_tensor(tensor, int(tensor.max()) + 1 if tensor.numel() else 1)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where} must be a class index for each sample: {error}") from error
    number = len(dataset)
    if len(labels) != number:
        raise ValueError(f"{where} must be one for each of {number} samples, got {len(labels)}")
    return labels
