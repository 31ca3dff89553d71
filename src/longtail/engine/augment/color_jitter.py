"""Colour jitter of whole batches: brightness, contrast and colour, in this order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.engine.augment import tones

_PARTS = (tones.brightness, tones.contrast, tones.color)


@dataclass(frozen=True)
class ColorJitter:
    """Each image times factors of its own, even in 1 ± the strength of each.

    Most code draws the order of the three too; here it is always the same.

    Args:
        brightness: Mixed with black.
        contrast: Mixed with the mean of the grey image.
        color: Mixed with the grey image.

    >>> images = torch.full((2, 3, 1, 1), 100, dtype=torch.uint8)
    >>> ColorJitter()(images, Generator().manual_seed(0))[:, 0, 0, 0].tolist()
    [99, 121]
    """

    brightness: float = 0.4
    contrast: float = 0.4
    color: float = 0.4

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """All images changed; uint8."""
        drawn = torch.rand(
            (len(_PARTS), len(images)), generator=generator, device=generator.device
        ).to(images.device)
        strengths = (self.brightness, self.contrast, self.color)
        for part, strength, share in zip(_PARTS, strengths, drawn, strict=True):
            images = part(images, 1 + strength * (2 * share - 1))
        return images
