"""Colour jitter of whole batches: brightness, contrast and colour, in this order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.engine.augment import tones
from longtail.engine.augment.augmentation import check_bytes
from longtail.ranges import Fraction

_PARTS = (tones.brightness, tones.contrast, tones.color)


@dataclass(frozen=True)
class ColorJitter:
    """Each image times factors of its own, even in 1 ± the strength of each.

    Most code draws the order of the three too; here it is always the same.

    Args:
        brightness: Mixed with black; a strength of 0 to 1, as the others.
        contrast: Mixed with the mean of the grey image.
        color: Mixed with the grey image.

    >>> images = torch.full((2, 3, 1, 1), 100, dtype=torch.uint8)
    >>> ColorJitter()(images, Generator().manual_seed(0))[:, 0, 0, 0].tolist()
    [99, 121]
    """

    brightness: Fraction = 0.4
    contrast: Fraction = 0.4
    color: Fraction = 0.4

    def __post_init__(self) -> None:
        if not all(0 <= strength <= 1 for strength in self._strengths):
            raise ValueError(f"the strengths must lie in [0, 1], got {self}")

    @property
    def _strengths(self) -> tuple[float, ...]:
        return self.brightness, self.contrast, self.color

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """All images changed; uint8."""
        many = len(check_bytes(images, "ColorJitter"))
        drawn = torch.rand((len(_PARTS), many), generator=generator, device=generator.device)
        for part, strength, share in zip(
            _PARTS, self._strengths, drawn.to(images.device), strict=True
        ):
            images = part(images, 1 + strength * (2 * share - 1))
        return images
