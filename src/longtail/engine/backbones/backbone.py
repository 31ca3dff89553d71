"""What every backbone is, and the layers that those of our own are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn


class Backbone(nn.Module, ABC):
    """A network without a classifier: inputs (N, ...) to features (N, dim).

    Weights are drawn from torch's global generator, as torch's own layers are: call
    `torch.manual_seed` before making one.

    Attributes:
        dim: How many numbers a feature has.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """The features."""


Norm: TypeAlias = Literal["batch", "group", "none"]

_GROUPS = 8


def check_norm(norm: Norm) -> Norm:
    """The name, or a ValueError."""
    if norm not in get_args(Norm):
        names = ", ".join(f'"{name}"' for name in get_args(Norm))
        raise ValueError(f"norm must be one of {names}, got {norm!r}")
    return norm


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """The layer; group-norm has 8 groups."""
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(_GROUPS, channels) if norm == "group" else nn.Identity()


def conv3x3(inputs: int, outputs: int, stride: int, norm: Norm) -> nn.Conv2d:
    """A 3 x 3 convolution that keeps the size, or halves it; biased where no norm shifts it."""
    conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=norm == "none")
    nn.init.kaiming_normal_(conv.weight)
    if conv.bias is not None:
        nn.init.zeros_(conv.bias)
    return conv


def channels_last(images: Tensor) -> Tensor:
    """The same images with the channels of a pixel side by side in memory.

    All that follows a convolution is then laid out so, and a training step on a CPU takes about
    three quarters of the time. The weights stay as they are: nothing changes in what is saved.
    """
    return images.contiguous(memory_format=torch.channels_last)
