"""An augmentation: a batch of images in, as many out, each drawn on its own.

It is a plain callable `augment(images, generator)` on images (N, C, H, W), uint8 from 0 to 255 or
floating. All randomness comes from the generator, in draws whose number depends on the shape of
the batch alone: the same state gives the same images, and `generator.get_state()` is all that a run
must keep to go on later. With a generator on the CPU the draws are the same whatever device the
images are on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor


class Augmentation(Protocol):
    """What all augmentations of single images are."""

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """New images; those given are left as they are."""


@dataclass(frozen=True, init=False)
class Chain:
    """Augmentations one after the other.

    Args:
        steps: The first is applied first.

    >>> from longtail.engine.augment import Flip, Normalize, RandomCrop
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
