"""Cutout: a square of every image is hidden (DeVries and Taylor, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.core.numbers import check_number, check_whole
from longtail.engine.augment.augmentation import check_images, draw_integers
from longtail.ranges import Pixels


@dataclass(frozen=True)
class Cutout:
    """Fills a square around a pixel drawn at random; what of it lies outside is lost.

    So less than the whole square is hidden in many images, as in the paper.

    Args:
        size: Of the square, in pixels: 16 for CIFAR-10, 8 for CIFAR-100 in the paper; codes with
            AutoAugment take 16 for both.
        fill: What it is filled with. After `Normalize` 0 is the mean colour, before it black.

    >>> images = torch.ones(1, 1, 4, 4)
    >>> Cutout(size=2)(images, torch.Generator().manual_seed(0))
    tensor([[[[0., 0., 1., 1.],
              [0., 0., 1., 1.],
              [1., 1., 1., 1.],
              [1., 1., 1., 1.]]]])
    """

    size: Pixels = 16
    fill: float = 0.0

    def __post_init__(self) -> None:
        check_whole(self.size, "size", least=1)
        check_number(self.fill, "fill")

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """The images, each with a square of its own filled."""
        many, _, height, width = check_images(images).shape
        rows = self._hidden(height, many, generator).to(images.device)
        columns = self._hidden(width, many, generator).to(images.device)
        square = (rows[:, :, None] & columns[:, None, :])[:, None]
        return images.masked_fill(square, self.fill)

    def _hidden(self, length: int, many: int, generator: Generator) -> Tensor:
        """Which places along one side are in the square, for each image."""
        start = draw_integers(length, (many, 1), generator) - self.size // 2
        at = torch.arange(length, device=start.device)
        return (at >= start) & (at < start + self.size)
