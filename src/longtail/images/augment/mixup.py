r"""Mixup: every image is mixed with another, and the labels with it (Zhang et al., ICLR 2018).

    x ← λ·x + (1 − λ)·x',    q ← λ·e_y + (1 − λ)·e_y',    λ ~ Beta(α, α)

The other image x' is of the same batch, by a random permutation. λ is drawn for each image; most
published code draws one for a whole batch, which has the same mean and more noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from longtail.core.tensors import label_tensor
from longtail.images.augment.augmentation import check_images, draw_integers
from longtail.ranges import Positive, check_fields


@dataclass(frozen=True)
class Mixup:
    """Images mixed in pairs, and their soft labels, which the losses take in place of labels.

    It comes last, after `Normalize`, since bytes cannot hold what is mixed.

    Args:
        alpha: Of the Beta distribution; small ones mix little. The paper has 1 for CIFAR, 0.2 for
            ImageNet.

    >>> images, labels = torch.eye(2).view(2, 1, 1, 2), torch.tensor([0, 1])
    >>> mixed, soft = Mixup(alpha=1.0)(images, labels, 2, torch.Generator().manual_seed(0))
    >>> bool((mixed.view(2, 2) == soft).all()), soft.sum(dim=1)
    (True, tensor([1., 1.]))
    """

    alpha: Positive = 1.0

    def __post_init__(self) -> None:
        check_fields(self)

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
        column = share[:, None]
        return (
            images[other].lerp(images, share.view(-1, 1, 1, 1)),
            column * hard + (1 - column) * hard[other],
        )

    def _shares(self, many: int, generator: Generator) -> Tensor:
        # torch draws from Beta with its global generator only; NumPy takes a seed drawn from ours.
        seed = int(draw_integers(2**62, (1,), generator))
        return torch.from_numpy(np.random.default_rng(seed).beta(self.alpha, self.alpha, many))
