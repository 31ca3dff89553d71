"""Images of one size that stay in memory, as those of CIFAR."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor
from longtail.data.images.labelled import LabelledImages, check_positions

_CHANNELS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class ImageArrays(LabelledImages):
    """Images and their labels as two arrays; a map-style dataset.

    Attributes:
        images: Uint8, shape (N, C, H, W).
        labels: The class of each image, int64, shape (N,).
        classes: The name of each class; by default 0, 1, ... up to the largest label.

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
        object.__setattr__(self, "images", _checked(self.images, len(self.labels)))

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image as uint8 of shape (C, H, W), and its label."""
        return self.images[index], int(self.labels[index])

    def subset(self, positions: ArrayLike) -> ImageArrays:
        """A copy of the images at these positions, in this order, with the same classes."""
        at = check_positions(positions, len(self))
        return replace(self, images=self.images[at], labels=self.labels[at])


def channels_first(images: Tensor) -> Tensor:
    """Of shape (N, C, H, W), if they are of shape (N, H, W, C)."""
    return images.permute(0, 3, 1, 2).contiguous() if _has_channels_last(images) else images


def _checked(images: ArrayLike, number: int) -> Tensor:
    given = as_tensor(images)
    if given.dtype != torch.uint8 or given.dim() != 4:
        raise ValueError(
            "images must be uint8 (0 to 255) of shape (N, C, H, W), "
            f"got {given.dtype} of shape {tuple(given.shape)}; convert them first"
        )
    if _has_channels_last(given):
        raise ValueError(
            f"images must have their channels in axis 1, got shape {tuple(given.shape)}; "
            "move them with images.permute(0, 3, 1, 2), in NumPy images.transpose(0, 3, 1, 2)"
        )
    if len(given) != number:
        raise ValueError(f"there must be a label for each of {len(given)} images, got {number}")
    return given


def _has_channels_last(images: Tensor) -> bool:
    return images.dim() == 4 and images.shape[3] in _CHANNELS and images.shape[1] not in _CHANNELS
