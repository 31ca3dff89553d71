r"""The cosine head: only directions count, neither the length of weights nor that of features.

    f_y = s · w_y·Φ / (‖w_y‖ ‖Φ‖)

Carries: what its loss and sampler say.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.core.numbers import check_number
from longtail.heads.distances import unit
from longtail.heads.head import CRT, Head, copy_rows
from longtail.ranges import Positive


class Cosine(Head):
    """s·cos(w, Φ).

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        scale: s, which sets how sure the largest logit can be. 1 for `losses.LDAM`, which
            multiplies by its own unless told that the head does.
        learn_scale: Whether s is trained too.

    >>> head = Cosine(2, 2, scale=10.0)
    >>> _ = head.weight.data.copy_(torch.tensor([[2.0, 0.0], [0.0, 5.0]]))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[6.0, 8.0]]
    """

    sgd = CRT
    curved = "it divides by the length of the features"
    scale: Tensor

    def __init__(
        self, dim: int, num_classes: int, scale: Positive = 16.0, learn_scale: bool = False
    ) -> None:
        super().__init__(dim, num_classes)
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        start = torch.tensor(check_number(scale, "scale"))
        if learn_scale:
            self.scale = nn.Parameter(start)
        else:
            self._hold("scale", start)

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, scale: float = 16.0, learn_scale: bool = False
    ) -> Cosine:
        """Start from the directions of trained weights; the bias is dropped."""
        head = cls(linear.in_features, linear.out_features, scale, learn_scale).to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        return head

    def forward(self, features: Tensor) -> Tensor:
        """The logits; zero for features that are zero."""
        wide = self._widened(features)
        cosines = F.linear(unit(wide), unit(self.weight.to(wide.dtype)))
        return self.scale.to(cosines.dtype) * cosines
