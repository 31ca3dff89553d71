r"""Batches of images, from where they are stored to what the model sees in training.

They are picked from tensors in memory, or read from files by worker processes. The channels of a
pixel end up side by side in memory, which convolutions of any library are faster with.

`FixedSize` makes squares of images of any size. To predict: the shorter side is scaled to `resize`,
and the middle is cut out. To train with `random="place"`: a square of that size is cut out anywhere
in the middle square of `resize` pixels (Krizhevsky et al., NIPS 2012). With `random=True`: a
rectangle of 8 to 100 % of the area, with sides in a ratio from 3/4 to 4/3, both drawn (of the ratio
its logarithm), is cut out anywhere and scaled; the middle if none of ten drawn fits (Szegedy et
al., CVPR 2015, as in most code for ImageNet). Bilinear, with anti-aliasing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Generator, Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_whole
from longtail.engine.backbones.backbone import channels_last
from longtail.images import ImageArrays, LabelledImages
from longtail.images.augment import Augmentation, Mixup, Normalize

_AREAS, _RATIOS, _TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10

Source: TypeAlias = "InMemory | FromFiles"


@dataclass(frozen=True, eq=False)
class FixedSize(LabelledImages):
    """Images as squares of `size` pixels a side; a map-style dataset like the one it is made of.

    `resize` is by default 8/7 of `size`, 256 for 224. Prediction asks for the middle whatever
    `random` says.

    >>> wide = ImageArrays(torch.zeros(1, 3, 20, 30, dtype=torch.uint8), [0])
    >>> FixedSize(wide, size=8)[0][0].shape
    torch.Size([3, 8, 8])
    """

    images: LabelledImages
    size: int
    resize: int | None = None
    random: bool | Literal["place"] = False

    def __post_init__(self) -> None:
        size = check_whole(self.size, "size")
        if size < 1 or (self.resize is not None and check_whole(self.resize, "resize") < size):
            raise ValueError(
                "size must be 1 pixel or more and resize at least size, "
                f"got size={self.size}, resize={self.resize}"
            )
        if self.random not in (False, True, "place"):
            raise ValueError(f'random must be True, False or "place", got {self.random!r}')
        object.__setattr__(self, "labels", self.images.labels)
        object.__setattr__(self, "classes", self.images.classes)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The middle of the image, uint8 of shape (C, size, size), and its label."""
        image, label = self.images[index]
        return self._square(image), label

    def drawn(self, index: int, generator: Generator) -> tuple[Tensor, int]:
        """The image as training sees it."""
        image, label = self.images[index]
        if self.random == "place":
            return self._square(image, generator), label
        return self._rectangle(image, generator) if self.random else self._square(image), label

    def subset(self, positions: ArrayLike) -> FixedSize:
        """The images at these positions, in this order, with the same classes."""
        return replace(self, images=self.images.subset(positions))

    def _square(self, image: Tensor, generator: Generator | None = None) -> Tensor:
        """The middle of the scaled image, or a place near it that is drawn."""
        shorter = self.resize or round(self.size * 8 / 7)
        scale = shorter / min(image.shape[1:])
        height, width = (max(shorter, round(side * scale)) for side in image.shape[1:])
        top, left = (height - self.size) // 2, (width - self.size) // 2
        if generator is not None:
            free = shorter - self.size
            down, right = torch.randint(free + 1, (2,), generator=generator).tolist()
            top, left = (height - shorter) // 2 + down, (width - shorter) // 2 + right
        scaled = _scaled(image, height, width)
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
        return self._square(image)


def _scaled(image: Tensor, height: int, width: int) -> Tensor:
    if image.shape[1:] == (height, width):
        return image
    return F.interpolate(image[None], (height, width), mode="bilinear", antialias=True)[0]


class Batch(NamedTuple):
    """Images as they are stored, uint8 (N, C, H, W), and their labels."""

    images: Tensor
    labels: Tensor


def image_source(images: LabelledImages, device: torch.device, num_workers: int = 0) -> Source:
    """Where the batches come from."""
    if isinstance(images, ImageArrays):
        return InMemory(images.images.to(device), images.labels.to(device))
    return FromFiles(images, device, num_workers)


class InMemory(NamedTuple):
    """Images that stay on the device as one tensor: a batch is an index away."""

    images: Tensor
    labels: Tensor

    def batches(
        self, positions: Sequence[int], size: int, seed: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """The images at these positions, `size` at a time."""
        order = torch.tensor(positions, dtype=torch.long).to(self.images.device)
        for at in torch.split(order, size) if len(order) else ():
            yield Batch(self.images.index_select(0, at), self.labels[at])


class FromFiles(NamedTuple):
    """Images that are read when their turn comes."""

    images: LabelledImages
    device: torch.device
    num_workers: int

    def batches(
        self, positions: Sequence[int], size: int, seed: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """The images at these positions, `size` at a time.

        What is random in reading them follows from the seed and the place, counted from `start`.
        """
        generator = Generator().manual_seed(seed)
        seeds = torch.randint(2**62, (start + len(positions),), generator=generator)[start:]
        keyed = list(zip(positions, seeds.tolist(), strict=True))
        on_gpu = self.device.type == "cuda"
        loader = DataLoader(
            _Keyed(self.images),
            batch_sampler=[keyed[i : i + size] for i in range(0, len(keyed), size)],
            num_workers=self.num_workers,
            collate_fn=_collated,
            pin_memory=on_gpu,
            # Or it would draw a seed from torch's generator, once more if a run is started again.
            generator=Generator().manual_seed(0),
        )
        for read in loader:
            if isinstance(read, Exception):
                raise read
            yield Batch(*(part.to(self.device, non_blocking=on_gpu) for part in read))


class _Keyed(Dataset["tuple[Tensor, int] | Exception"]):
    """Images by position and seed.

    An image that cannot be read is handed on as the error: raised in a worker process, it would
    reach the reader as the traceback of that process.
    """

    def __init__(self, images: LabelledImages) -> None:
        self.images = images

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, int] | Exception:
        position, seed = key
        try:
            if isinstance(self.images, FixedSize):
                return self.images.drawn(position, Generator().manual_seed(seed))
            return self.images[position]
        except (ValueError, OSError) as error:
            return error


def _collated(samples: list[tuple[Tensor, int] | Exception]) -> Batch | Exception:
    read = [sample for sample in samples if not isinstance(sample, Exception)]
    if len(read) < len(samples):
        return next(sample for sample in samples if isinstance(sample, Exception))
    images, labels = zip(*read, strict=True)
    shapes = {tuple(image.shape) for image in images}
    if len(shapes) > 1:
        return ValueError(
            f"the images of a batch must be of one size, got {sorted(shapes)[:3]}; make them so: "
            "FixedSize(images, size=224), in a recipe data.size=224"
        )
    return Batch(torch.stack(images), torch.tensor(labels))


class Inputs(NamedTuple):
    """Augments, normalises and mixes batches."""

    augment: Augmentation | None
    normalize: Normalize
    mixup: float | None
    num_classes: int
    generator: Generator

    def __call__(self, batch: Batch, size: int | None = None) -> tuple[Tensor, Tensor]:
        """The images, scaled to a size if there is one, and their labels.

        Labels are class indices, or probabilities after mixup.
        """
        images, labels = batch
        if self.augment is not None:
            images = self.augment(images, self.generator)
        images = self.normalize(images)
        if size is not None:
            images = F.interpolate(images, (size, size), mode="bilinear", antialias=True)
        if self.mixup is not None:
            images, labels = Mixup(self.mixup)(images, labels, self.num_classes, self.generator)
        return channels_last(images), labels
