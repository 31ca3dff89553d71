r"""Learnable weight scaling (LWS): trained weights stay, one factor a class is learned.

    f_y = s_y · (w_y·Φ + b_y)

Carries: None. It multiplies logits, which is no change of prior: measure it.
Kang et al., ICLR 2020.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from longtail.heads.head import LinearHead, copy_linear
from longtail.heads.recipe import CRT


class LearnableScale(LinearHead):
    """s·(w·Φ + b), of which only s is trained, from one.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        bias: Whether there is a bias, which is scaled too.

    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.weight.data.fill_(1.0), layer.bias.data.fill_(1.0)
    >>> head = LearnableScale.from_linear(layer)
    >>> _ = head.scale.data.copy_(torch.tensor([1.0, 2.0]))
    >>> head(torch.tensor([[1.0, 1.0]])).tolist()
    [[3.0, 6.0]]
    """

    recipe = replace(CRT, epochs=5)
    takes_prior = False
    weight: Tensor
    bias: Tensor | None

    def __init__(self, dim: int, num_classes: int, bias: bool = True) -> None:
        super().__init__(dim, num_classes)
        layer = nn.Linear(dim, num_classes, bias=bias)
        self.register_buffer("weight", layer.weight.detach())
        self.register_buffer("bias", layer.bias.detach() if bias else None)
        self.scale = nn.Parameter(torch.ones(num_classes))

    @classmethod
    def from_linear(cls, linear: nn.Linear) -> LearnableScale:
        """Take trained weights and bias, which stay as they are."""
        head = cls(linear.in_features, linear.out_features, linear.bias is not None)
        copy_linear(head.to(linear.weight), linear)
        return head

    @property
    def rows(self) -> Tensor:
        """The weights, as they were trained."""
        return self.weight

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The scaled weight and bias."""
        scale = self.scale.to(dtype)
        bias = None if self.bias is None else scale * self.bias.to(dtype)
        return scale[:, None] * self.weight.to(dtype), bias
