"""Backbone: what turns inputs into features, and says how many numbers a feature has."""

from __future__ import annotations

from abc import ABC, abstractmethod

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
