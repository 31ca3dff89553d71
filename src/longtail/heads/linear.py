r"""Linear heads: trained anew (cRT), or with one learned factor a class (LWS).

    Linear           f_y = w_y·Φ + b_y
    LearnableScale   f_y = s_y · (w_y·Φ + b_y),    w and b stay as they were trained

`Linear` is the classifier all others are compared with; trained anew on frozen features with
class-balanced sampling it is cRT, classifier re-training. Kang et al., ICLR 2020, for both.

Carries: `Linear` what its loss and sampler say; cross-entropy on class-balanced batches gives
uniform. `LearnableScale` None: it multiplies logits, which is no change of prior; measure it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from longtail.core import PriorLike
from longtail.heads.head import CRT, LinearHead
from longtail.heads.starts import random_layer


class Linear(LinearHead):
    """w·Φ + b, started as torch.nn.Linear is.

    >>> layer = nn.Linear(2, 2)
    >>> head = Linear.from_linear(layer, carried=[90, 10])
    >>> head.carried
    Prior([0.9, 0.1])
    """

    sgd = CRT
    bias: nn.Parameter | None

    def __init__(self, dim: int, num_classes: int, bias: bool = True) -> None:
        super().__init__(dim, num_classes)
        layer = random_layer(dim, num_classes, bias)
        self.weight = layer.weight
        self.register_parameter("bias", layer.bias)

    @classmethod
    def from_linear(cls, linear: nn.Linear, carried: PriorLike | None = None) -> Linear:
        """Start from trained weights and bias; `carried` says what their logits carry."""
        head = cls(linear.in_features, linear.out_features, linear.bias is not None)
        head._with_weight_of(linear).carry(carried)
        return head

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Weight and bias."""
        return self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype)


class LearnableScale(LinearHead):
    """s·(w·Φ + b), of which only s is trained, from one.

    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.weight.data.fill_(1.0), layer.bias.data.fill_(1.0)
    >>> head = LearnableScale.from_linear(layer)
    >>> _ = head.scale.data.copy_(torch.tensor([1.0, 2.0]))
    >>> head(torch.tensor([[1.0, 1.0]])).tolist()
    [[3.0, 6.0]]
    """

    sgd = replace(CRT, epochs=5)
    takes_prior = False
    weight: Tensor
    bias: Tensor | None

    def __init__(self, dim: int, num_classes: int, bias: bool = True) -> None:
        super().__init__(dim, num_classes)
        layer = random_layer(dim, num_classes, bias)
        self.register_buffer("weight", layer.weight.detach())
        self.register_buffer("bias", layer.bias.detach() if bias else None)
        self.scale = nn.Parameter(torch.ones(num_classes))

    @classmethod
    def from_linear(cls, linear: nn.Linear) -> LearnableScale:
        """Take trained weights and bias, which stay as they are."""
        head = cls(linear.in_features, linear.out_features, linear.bias is not None)
        return head._with_weight_of(linear)

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The scaled weight and bias."""
        scale = self.scale.to(dtype)
        bias = None if self.bias is None else scale * self.bias.to(dtype)
        return scale[:, None] * self.weight.to(dtype), bias
