r"""An augmentation: a batch of images in, as many out, each drawn on its own.

It is a plain callable `augment(images, generator)` on images (N, C, H, W), uint8 from 0 to 255 or
floating. All randomness comes from the generator, in draws whose number depends on the shape of
the batch alone: the same state gives the same images, and `generator.get_state()` is all that a run
must keep to go on later. With a generator on the CPU the draws are the same whatever device the
images are on. Mixup alone changes the labels too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from longtail.core.tensors import label_tensor
from longtail.images.augment import operations
from longtail.ranges import Fraction, Pixels, Positive, Whole, check_fields


class Augmentation(Protocol):
    """What all augmentations of single images are."""

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """New images; those given are left as they are."""


@dataclass(frozen=True, init=False)
class Chain:
    """Augmentations one after the other, the first first.

    >>> from longtail.images.augment import Flip, Normalize, RandomCrop
    >>> augment = Chain(RandomCrop(padding=4), Flip(), Normalize())
    >>> images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    >>> augment(images, torch.Generator().manual_seed(0))[0, :, 0, 0]
    tensor([-2.429, -2.418, -2.221])
    """

    steps: tuple[Augmentation, ...]

    def __init__(self, *steps: Augmentation) -> None:
        object.__setattr__(self, "steps", steps)

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """All steps on these images."""
        for step in self.steps:
            images = step(images, generator)
        return images


def check_images(images: Tensor) -> Tensor:
    """Images (N, C, H, W), uint8 or floating, or a ValueError."""
    if images.dim() != 4 or not (images.dtype == torch.uint8 or images.is_floating_point()):
        raise ValueError(
            "images must be of shape (N, C, H, W), and uint8 or floating, "
            f"got {images.dtype} of shape {tuple(images.shape)}; "
            "for a single image use images[None], for NumPy's (N, H, W, C) permute(0, 3, 1, 2)"
        )
    return images


def check_bytes(images: Tensor, name: str) -> Tensor:
    """Images as bytes, grey or in colour, or a ValueError that names who wants them."""
    if check_images(images).dtype != torch.uint8 or images.shape[1] not in (1, 3):
        raise ValueError(
            f"{name} is for uint8 images of 1 or 3 channels, "
            f"got {images.dtype} and {images.shape[1]} channels; put it before Normalize"
        )
    return images


def draw_integers(below: int, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Integers 0 ... below - 1, all as likely, where the generator is."""
    return torch.randint(below, shape, generator=generator, device=generator.device)


def draw_uniform(shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Numbers in [0, 1), in float64, where the generator is."""
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)


@dataclass(frozen=True)
class CheckedFields:
    """Options that lie in the ranges of their types."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class RandomCrop(CheckedFields):
    """Pads the images on all sides, and cuts as large ones out of them as they were.

    All (2·padding + 1)² places are as likely. ELM, LADE and LDAM pad by 4 pixels, the code of logit
    adjustment by 2. Before `Normalize` a fill of 0 is black.
    """

    padding: Whole = 4
    fill: float = 0.0

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Every image from a place of its own."""
        many, _, height, width = check_images(images).shape
        corners = draw_integers(2 * self.padding + 1, (2, many), generator).to(images.device)
        padded = F.pad(images, (self.padding,) * 4, value=self.fill)
        # A view of all crops at once, of which the indexing copies one for each image.
        crops = padded.unfold(2, height, 1).unfold(3, width, 1)
        return crops[torch.arange(many, device=images.device), :, corners[0], corners[1]]


@dataclass(frozen=True)
class Flip(CheckedFields):
    """Turns left and right round, each image with that probability."""

    probability: Fraction = 0.5

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Some of the images flipped."""
        drawn = draw_uniform((len(check_images(images)), 1, 1, 1), generator) < self.probability
        return torch.where(drawn.to(images.device), images.flip(3), images)


@dataclass(frozen=True)
class Cutout(CheckedFields):
    """Fills a square around a pixel drawn at random; what of it lies outside is lost.

    The paper's size is 16 pixels for CIFAR-10 and 8 for CIFAR-100; code with AutoAugment takes 16
    for both. After `Normalize` a fill of 0 is the mean colour, before it black.

    >>> Cutout(size=2)(torch.ones(1, 1, 4, 4), torch.Generator().manual_seed(0))
    tensor([[[[0., 0., 1., 1.],
              [0., 0., 1., 1.],
              [1., 1., 1., 1.],
              [1., 1., 1., 1.]]]])
    """

    size: Pixels = 16
    fill: float = 0.0

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


@dataclass(frozen=True)
class ColorJitter(CheckedFields):
    """Each image mixed with black, with its mean grey and with its grey image, in this order.

    The factors are drawn for each image, even in 1 ± the strength of each, from 0 to 1.

    >>> images = torch.full((2, 3, 1, 1), 100, dtype=torch.uint8)
    >>> ColorJitter()(images, Generator().manual_seed(0))[:, 0, 0, 0].tolist()
    [99, 121]
    """

    brightness: Fraction = 0.4
    contrast: Fraction = 0.4
    color: Fraction = 0.4

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """All images changed; uint8."""
        many = len(check_bytes(images, "ColorJitter"))
        drawn = torch.rand((3, many), generator=generator, device=generator.device)
        factors = 2 * drawn.to(images.device) - 1
        images = operations.brightness(images, 1 + self.brightness * factors[0])
        images = operations.contrast(images, 1 + self.contrast * factors[1])
        return operations.color(images, 1 + self.color * factors[2])


@dataclass(frozen=True)
class Mixup(CheckedFields):
    """Images mixed in pairs, and their soft labels, which the losses take in place of labels.

    x ← λ·x + (1 − λ)·x',    q ← λ·e_y + (1 − λ)·e_y',    λ ~ Beta(α, α)   (Zhang et al., ICLR 2018)

    The other image x' is of the same batch, by a random permutation. λ is drawn for each image;
    most published code draws one for a whole batch, which is noisier. It comes last, after
    `Normalize`, since bytes cannot hold what is mixed. The paper has α = 1 for CIFAR, 0.2 for
    ImageNet.

    >>> images, labels = torch.eye(2).view(2, 1, 1, 2), torch.tensor([0, 1])
    >>> mixed, soft = Mixup(alpha=1.0)(images, labels, 2, torch.Generator().manual_seed(0))
    >>> bool((mixed.view(2, 2) == soft).all()), soft.sum(dim=1)
    (True, tensor([1., 1.]))
    """

    alpha: Positive = 1.0

    def __call__(
        self, images: Tensor, labels: Tensor, num_classes: int, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """The mixed images, and soft labels (N, num_classes) of their type."""
        if not check_images(images).is_floating_point():
            raise ValueError("mixup is for floating images, got uint8; put it after Normalize")
        classes = label_tensor(labels, num_classes).to(images.device)
        if len(classes) != len(images):
            raise ValueError(f"got {len(images)} images but {len(classes)} labels")
        share = self._shares(len(images), generator).to(images)
        order = torch.randperm(len(images), generator=generator, device=generator.device)
        other = order.to(images.device)
        hard = F.one_hot(classes, num_classes).to(images.dtype)
        soft = share[:, None] * hard + (1 - share[:, None]) * hard[other]
        return images[other].lerp(images, share.view(-1, 1, 1, 1)), soft

    def _shares(self, many: int, generator: Generator) -> Tensor:
        # torch draws from Beta with its global generator only; NumPy takes a seed drawn from ours.
        seed = int(draw_integers(2**62, (1,), generator))
        return torch.from_numpy(np.random.default_rng(seed).beta(self.alpha, self.alpha, many))
