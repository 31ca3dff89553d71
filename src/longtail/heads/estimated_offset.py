r"""The estimated-offset head: the boundary between two classes runs midway between their centres.

    f_k = w_k·Φ − ½ c_k·w_k                                                            (EO §2.4)

With w = Σ⁻¹c, as in linear discriminant analysis, both centres are equally far from the boundary
(EO eq. 4), however many samples each class had. The centres c stand for the class means and are
moved by `losses.EstimatedOffset`, not by gradients.

Carries: what it was trained for; `losses.EstimatedOffset` says None, so measure it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class EstimatedOffset(nn.Module):
    """Linear logits with an offset from the class centres, in place of a bias.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        use_offset: False leaves the offset out of the logits: with the uniform constraint of the
            loss, the ablation "UC only".

    >>> import torch
    >>> head = EstimatedOffset(2, 2)
    >>> _ = head.weight.data.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> _ = head.centers.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> head(torch.tensor([[2.0, 5.0]])).tolist()        # midway: the logits are equal
    [[1.5, 1.5]]
    """

    centers: Tensor

    def __init__(self, dim: int, num_classes: int, use_offset: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        self.use_offset = use_offset

    @classmethod
    def from_linear(cls, linear: nn.Linear, use_offset: bool = True) -> EstimatedOffset:
        """Start from trained weights; the bias, which carries the training prior, is dropped."""
        head = cls(linear.in_features, linear.out_features, use_offset).to(linear.weight)
        with torch.no_grad():
            head.weight.copy_(linear.weight)
        return head

    @property
    def offset(self) -> Tensor:
        """½ c_k·w_k of each class: what is subtracted."""
        return 0.5 * (self.centers * self.weight).sum(dim=1)

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        return F.linear(features, self.weight, -self.offset if self.use_offset else None)
