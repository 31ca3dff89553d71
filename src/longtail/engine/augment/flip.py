"""Horizontal flips."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.engine.augment.augmentation import check_images, draw_uniform
from longtail.ranges import Fraction


@dataclass(frozen=True)
class Flip:
    """Turns left and right round.

    Args:
        probability: Of an image to be flipped.

    >>> images = torch.tensor([1, 2, 3, 4] * 3, dtype=torch.uint8).view(3, 1, 1, 4)
    >>> Flip()(images, torch.Generator().manual_seed(0))[:, 0, 0]
    tensor([[1, 2, 3, 4],
            [1, 2, 3, 4],
            [4, 3, 2, 1]], dtype=torch.uint8)
    """

    probability: Fraction = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability must lie in [0, 1], got {self.probability}")

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Some of the images flipped."""
        drawn = draw_uniform((len(check_images(images)),), generator) < self.probability
        flipped = drawn.to(images.device).view(-1, 1, 1, 1)
        return torch.where(flipped, images.flip(3), images)
