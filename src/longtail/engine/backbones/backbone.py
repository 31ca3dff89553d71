"""What every backbone is, the layers that those of our own are made of, and two small ones.

The small ones are for a CPU, for tests and for a first look at data. `SmallCNN` is a net of our
own, with no published figure to stand beside; a training step takes about a fourteenth of the time
of one of ResNet-32. `MLP` is a perceptron for inputs of a few numbers. ELM (section 2.3) separates
two moons with hidden layers of 16, 8 and 2 units and ReLU; the two of the last one are its
embedding. Whether a ReLU follows them is not said: here it does; `rectified=False` leaves them free
to be negative.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn

from longtail.ranges import Count, Width

Norm: TypeAlias = Literal["batch", "group", "none"]


class Backbone(nn.Module, ABC):
    """A network without a classifier: inputs (N, ...) to features (N, dim).

    Weights are drawn from torch's global generator, as torch's own layers are: call
    `torch.manual_seed` before making one.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """The features."""


def norm_layer(norm: Norm, channels: int) -> nn.Module:
    """The layer, or a ValueError; group-norm has 8 groups."""
    if norm not in get_args(Norm):
        names = ", ".join(f'"{name}"' for name in get_args(Norm))
        raise ValueError(f"norm must be one of {names}, got {norm!r}")
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(8, channels) if norm == "group" else nn.Identity()


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


class SmallCNN(Backbone):
    """Four 3 x 3 convolutions, the first three of which halve the size: 0.24 million parameters.

    They have dim/4, dim/2, dim and dim channels, each with a norm ("group" has 8 groups) and ReLU.

    >>> net = SmallCNN()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(2, 3, 32, 32)).shape
    (241184, torch.Size([2, 128]))
    """

    def __init__(self, dim: Width = 128, norm: Norm = "batch", channels: Count = 3) -> None:
        if dim < 32 or dim % 32:
            raise ValueError(
                f"dim of small_cnn must be a multiple of 32, so that a fourth of it splits into "
                f"the groups of a group-norm, got {dim}"
            )
        super().__init__(dim)
        widths = [channels, dim // 4, dim // 2, dim, dim]
        layers: list[nn.Module] = []
        for (inputs, outputs), stride in zip(pairwise(widths), (2, 2, 2, 1), strict=True):
            layers += [conv3x3(inputs, outputs, stride, norm), norm_layer(norm, outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of images (N, channels, H, W): means over the pixels."""
        maps: Tensor = self.layers(channels_last(inputs))
        return maps.mean(dim=(2, 3))


class MLP(Backbone):
    """Linear layers with ReLU, after the last if `rectified`; nothing in it normalises.

    >>> net = MLP()
    >>> sum(p.numel() for p in net.parameters()), net(torch.zeros(3, 2)).shape
    (202, torch.Size([3, 2]))
    """

    def __init__(
        self, inputs: Count = 2, hidden: Sequence[Count] = (16, 8, 2), rectified: bool = True
    ) -> None:
        if not hidden or min(inputs, *hidden) < 1:
            raise ValueError(
                "inputs and the units of at least one hidden layer must be 1 or more, "
                f"got inputs={inputs}, hidden={tuple(hidden)}"
            )
        super().__init__(hidden[-1])
        layers: list[nn.Module] = []
        for before, after in pairwise((inputs, *hidden)):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*(layers if rectified else layers[:-1]))

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of inputs (N, ...), which are flattened."""
        features: Tensor = self.layers(inputs.flatten(1))
        return features
