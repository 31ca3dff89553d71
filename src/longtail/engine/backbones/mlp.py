"""A multi-layer perceptron, for features of a few numbers.

ELM (section 2.3) separates two moons with hidden layers of 16, 8 and 2 units and ReLU; the two of
the last one are its embedding. Whether a ReLU follows them is not said: here it does, as for every
hidden layer; `rectified=False` leaves them free to be negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from longtail.engine.backbones.backbone import Backbone
from longtail.ranges import Count


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
