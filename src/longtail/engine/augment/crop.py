"""Random crops of padded images: every image moves by up to `padding` pixels each way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from longtail.core.numbers import check_number, check_whole
from longtail.engine.augment.augmentation import check_images, draw_integers
from longtail.ranges import Whole


@dataclass(frozen=True)
class RandomCrop:
    """Pads the images on all sides, and cuts as large ones out of them as they were.

    All (2·padding + 1)² places are as likely. ELM, LADE and LDAM pad by 4 pixels, the code of logit
    adjustment by 2.

    Args:
        padding: Pixels on each side.
        fill: What they are filled with. Before `Normalize` 0 is black.

    >>> images = torch.arange(9, dtype=torch.uint8).view(1, 1, 3, 3)
    >>> RandomCrop(padding=1)(images, torch.Generator().manual_seed(0))
    tensor([[[[0, 3, 4],
              [0, 6, 7],
              [0, 0, 0]]]], dtype=torch.uint8)
    """

    padding: Whole = 4
    fill: float = 0.0

    def __post_init__(self) -> None:
        check_whole(self.padding, "padding", least=0)
        check_number(self.fill, "fill")

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Every image from a place of its own."""
        many, _, height, width = check_images(images).shape
        places = draw_integers(2 * self.padding + 1, (2, many), generator).to(images.device)
        padded = F.pad(images, (self.padding,) * 4, value=self.fill)
        # A view of all crops at once, of which the indexing copies one for each image.
        crops = padded.unfold(2, height, 1).unfold(3, width, 1)
        return crops[torch.arange(many, device=images.device), :, places[0], places[1]]
