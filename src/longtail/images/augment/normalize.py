"""Bytes to numbers around zero, (x/255 − mean) / std for each channel.

The figures for CIFAR are those that published code uses, for CIFAR-10 and CIFAR-100 alike. Their
standard deviations look like the mean of those within single images, which is 0.201, 0.198, 0.203
on CIFAR-100; over all of its pixels it is 0.267, 0.256, 0.276. Keep them where published results
are to be met, else measure with `channel_statistics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.images.augment.augmentation import check_images

CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_STD = (0.2023, 0.1994, 0.2010)


@dataclass(frozen=True)
class Normalize:
    """Float32 images with mean 0 and standard deviation 1 in each channel.

    Nothing is drawn, so it may be called without a generator. `mean` and `std` of each channel are
    those of values in [0, 1].

    >>> images = torch.tensor([0, 128, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    >>> Normalize(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))(images).flatten()
    tensor([-2.0000, 0.0078, 2.0000])
    """

    mean: tuple[float, ...] = CIFAR_MEAN
    std: tuple[float, ...] = CIFAR_STD

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not (
            all(0 < std < math.inf for std in self.std) and all(map(math.isfinite, self.mean))
        ):
            raise ValueError(
                "mean and std must have one number for each channel, and std be positive, "
                f"got mean={self.mean}, std={self.std}"
            )

    def __call__(self, images: Tensor, generator: Generator | None = None) -> Tensor:
        """Bytes are divided by 255 first; floating images are taken to lie in [0, 1]."""
        channels = check_images(images).shape[1]
        if channels != len(self.mean):
            raise ValueError(
                f"mean and std are of {len(self.mean)} channels, the images have {channels}; "
                "measure theirs with channel_statistics"
            )
        unit = 255.0 if images.dtype == torch.uint8 else 1.0
        mean, std = torch.tensor([self.mean, self.std], dtype=torch.float64) * unit
        shift, scale = (
            each.view(1, channels, 1, 1).to(images.device, torch.float32)
            for each in (-mean / std, 1 / std)
        )
        return torch.addcmul(shift, images.float(), scale)


def channel_statistics(images: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation over all pixels of each channel, for values in [0, 1].

    >>> images = torch.tensor([0, 255, 51, 51], dtype=torch.uint8).view(2, 2, 1, 1)
    >>> channel_statistics(images)
    ((0.1, 0.6), (0.1, 0.4))
    """
    if not check_images(images).numel():
        raise ValueError(f"expected at least one pixel, got shape {tuple(images.shape)}")
    if images.dtype == torch.uint8:
        values = torch.arange(256, dtype=torch.float64, device=images.device) / 255
        planes = images.transpose(0, 1).flatten(1)
        weights = torch.stack([plane.bincount(minlength=256) for plane in planes]).double()
        mean = (weights @ values) / weights.sum(dim=1)
        variance = (weights * (values - mean[:, None]).square()).sum(dim=1) / weights.sum(dim=1)
    else:
        by_channel = images.double().transpose(0, 1).flatten(1)
        variance, mean = torch.var_mean(by_channel, dim=1, correction=0)
    return tuple(mean.tolist()), tuple(variance.sqrt().tolist())
