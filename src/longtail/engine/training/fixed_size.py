r"""Images of any size as squares of one size.

To predict: the shorter side is scaled to `resize`, and the middle is cut out. To train with
`random=True`: a rectangle of 8 to 100 % of the area, with sides in a ratio from 3/4 to 4/3, both
drawn (of the ratio its logarithm), is cut out anywhere and scaled; the middle if none of ten drawn
fits (Szegedy et al., CVPR 2015, as in most code for ImageNet). Bilinear, with anti-aliasing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_whole
from longtail.images import LabelledImages

_AREAS, _RATIOS, _TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10


@dataclass(frozen=True, eq=False)
class FixedSize(LabelledImages):
    """Images as squares; a map-style dataset like the one it is made of.

    Attributes:
        images: Of any size.
        size: Pixels of a side.
        resize: What the shorter side is scaled to before the middle is cut out; by default 8/7 of
            `size`, 256 for 224.
        random: Whether training is to see random rectangles instead. Prediction asks for the middle
            whatever this says.

    >>> from longtail.images import ImageArrays
    >>> wide = ImageArrays(torch.zeros(1, 3, 20, 30, dtype=torch.uint8), [0])
    >>> FixedSize(wide, size=8)[0][0].shape
    torch.Size([3, 8, 8])
    """

    images: LabelledImages
    size: int
    resize: int | None = None
    random: bool = False

    def __post_init__(self) -> None:
        check_whole(self.size, "size")
        if self.resize is not None:
            check_whole(self.resize, "resize")
        if self.size < 1 or (self.resize is not None and self.resize < self.size):
            raise ValueError(
                "size must be 1 pixel or more and resize at least size, "
                f"got size={self.size}, resize={self.resize}"
            )
        object.__setattr__(self, "labels", self.images.labels)
        object.__setattr__(self, "classes", self.images.classes)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The middle of the image, uint8 of shape (C, size, size), and its label."""
        image, label = self.images[index]
        return self._middle(image), label

    def drawn(self, index: int, generator: Generator) -> tuple[Tensor, int]:
        """The image as training sees it."""
        if not self.random:
            return self[index]
        image, label = self.images[index]
        return self._rectangle(image, generator), label

    def subset(self, positions: ArrayLike) -> FixedSize:
        """The images at these positions, in this order, with the same classes."""
        return replace(self, images=self.images.subset(positions))

    def _middle(self, image: Tensor) -> Tensor:
        height, width = image.shape[1:]
        shorter = self.resize or round(self.size * 8 / 7)
        scale = shorter / min(height, width)
        scaled = _scaled(
            image, max(shorter, round(height * scale)), max(shorter, round(width * scale))
        )
        top, left = (scaled.shape[1] - self.size) // 2, (scaled.shape[2] - self.size) // 2
        return scaled[:, top : top + self.size, left : left + self.size].contiguous()

    def _rectangle(self, image: Tensor, generator: Generator) -> Tensor:
        height, width = image.shape[1:]
        for _ in range(_TRIES):
            share, turn, down, right = torch.rand(4, generator=generator).tolist()
            area = height * width * (_AREAS[0] + (_AREAS[1] - _AREAS[0]) * share)
            ratio = math.exp(math.log(_RATIOS[0]) + math.log(_RATIOS[1] / _RATIOS[0]) * turn)
            wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < high <= height:
                top, left = int(down * (height - high + 1)), int(right * (width - wide + 1))
                return _scaled(image[:, top : top + high, left : left + wide], self.size, self.size)
        return self._middle(image)


def _scaled(image: Tensor, height: int, width: int) -> Tensor:
    if image.shape[1:] == (height, width):
        return image
    return F.interpolate(image[None], (height, width), mode="bilinear", antialias=True)[0]
