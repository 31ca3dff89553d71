"""Small networks: for a CPU, for tests and for a first look at data.

`small_cnn` is a net of our own, with no published figure to stand beside: four 3 x 3 convolutions
with dim/4, dim/2, dim and dim channels, the first three of which halve the size, each with a norm
and a ReLU; the features are the means over the pixels. A training step takes about a fourteenth of
the time of one of ResNet-32.

`mlp` is a perceptron for inputs of a few numbers. ELM (section 2.3) separates two moons with hidden
layers of 16, 8 and 2 units and ReLU; the two of the last one are its embedding. Whether a ReLU
follows them is not said: here it does; `rectified=False` leaves them free to be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from longtail.engine.backbones.backbone import (
    Backbone,
    Norm,
    channels_last,
    check_norm,
    conv3x3,
    norm_layer,
)
from longtail.ranges import Count, Width


class SmallCNN(Backbone):
    """What `small_cnn` makes."""

    def __init__(self, dim: int, norm: Norm, channels: int) -> None:
        super().__init__(dim)
        widths = [channels, dim // 4, dim // 2, dim, dim]
        layers: list[nn.Module] = []
        for inputs, outputs, stride in zip(widths, widths[1:], (2, 2, 2, 1), strict=False):
            layers += [conv3x3(inputs, outputs, stride, norm), norm_layer(norm, outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W)."""
        maps: Tensor = self.layers(channels_last(inputs))
        return maps.mean(dim=(2, 3))


def small_cnn(dim: Width = 128, norm: Norm = "batch", channels: Count = 3) -> SmallCNN:
    """A convolutional network of four layers: 0.24 million parameters with 128 features.

    Args:
        dim: How many features; a multiple of 32.
        norm: "batch", "group" (8 groups), or "none".
        channels: Of the images.

    >>> import torch
    >>> net = small_cnn()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (241184, torch.Size([2, 128]))
    """
    if dim < 32 or dim % 32:
        raise ValueError(
            f"dim of small_cnn must be a multiple of 32, so that a fourth of it splits into the "
            f"groups of a group-norm, got {dim}"
        )
    return SmallCNN(dim, check_norm(norm), channels)


class MLP(Backbone):
    """What `mlp` makes."""

    def __init__(self, inputs: int, hidden: Sequence[int], rectified: bool) -> None:
        super().__init__(hidden[-1])
        layers: list[nn.Module] = []
        for before, after in pairwise((inputs, *hidden)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*(layers if rectified else layers[:-1]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of inputs (N, ...), which are flattened."""
        features: Tensor = self.layers(inputs.flatten(1))
        return features


def mlp(inputs: Count = 2, hidden: Sequence[Count] = (16, 8, 2), rectified: bool = True) -> MLP:
    """Linear layers with ReLU, started as torch.nn.Linear is; nothing in it normalises.

    Args:
        inputs: How many numbers an input has.
        hidden: Units of each layer; the last are the features.
        rectified: Whether a ReLU follows the last layer too.

    >>> import torch
    >>> net = mlp()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(3, 2)).shape
    (202, torch.Size([3, 2]))
    """
    if not hidden or min(inputs, *hidden) < 1:
        raise ValueError(
            "inputs and the units of at least one hidden layer must be 1 or more, "
            f"got inputs={inputs}, hidden={tuple(hidden)}"
        )
    return MLP(inputs, hidden, rectified)
