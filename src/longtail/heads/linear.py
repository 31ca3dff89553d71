r"""The linear head, f_y = w_y·Φ + b_y: the classifier all others are compared with.

Trained anew on frozen features with class-balanced sampling it is cRT, classifier re-training.

Carries: what its loss and sampler say; cross-entropy on class-balanced batches gives uniform.
Kang et al., ICLR 2020, for cRT.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longtail.core import PriorLike
from longtail.heads.head import LinearHead, copy_linear
from longtail.heads.recipe import CRT


class Linear(LinearHead):
    """w·Φ + b, started as torch.nn.Linear is.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        bias: Whether there is a bias.

    >>> layer = nn.Linear(2, 2)
    >>> head = Linear.from_linear(layer, carried=[90, 10])
    >>> head.carried
    Prior([0.9, 0.1])
    """

    recipe = CRT
    bias: nn.Parameter | None

    def __init__(self, dim: int, num_classes: int, bias: bool = True) -> None:
        super().__init__(dim, num_classes)
        layer = nn.Linear(dim, num_classes, bias=bias)
        self.weight = layer.weight
        self.register_parameter("bias", layer.bias)

    @classmethod
    def from_linear(cls, linear: nn.Linear, carried: PriorLike | None = None) -> Linear:
        """Start from trained weights and bias; `carried` says what their logits carry."""
        head = cls(linear.in_features, linear.out_features, linear.bias is not None)
        copy_linear(head.to(linear.weight), linear)
        head.carry(carried)
        return head

    @property
    def rows(self) -> Tensor:
        """The weights."""
        return self.weight

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Weight and bias."""
        return self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype)
