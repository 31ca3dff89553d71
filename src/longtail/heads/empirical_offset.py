r"""The empirical-offset head: trained weights with the offset of the class means, without a bias.

    f_k = w_k·Φ − ½ μ̃_k·w_k,        μ̃_k the mean feature of class k                   (EO §2.2)

EO eq. 2 makes the offset of a linear classifier ln π_k − ½ μ_kᵀΣ⁻¹μ_k with w_k = Σ⁻¹μ_k: keeping
the second term and leaving the first moves the boundary midway between the means (EO eq. 4).

Carries: uniform.
"""

from __future__ import annotations

from torch import nn

from longtail.heads.head import copy_rows
from longtail.heads.moments import ClassMoments
from longtail.heads.offset import OffsetHead


class EmpiricalOffset(OffsetHead):
    """Linear logits with the offset of the class means: `from_linear(linear, moments)`.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.

    >>> import torch, longtail as lt
    >>> features = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    >>> moments = lt.heads.class_moments(features, [0, 0, 1], num_classes=2)
    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.weight.data.copy_(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> EmpiricalOffset.from_linear(layer, moments)(torch.tensor([[1.0, 1.0]])).tolist()
    [[0.0, 0.5]]
    """

    def __init__(self, dim: int, num_classes: int) -> None:
        super().__init__(dim, num_classes)
        self._is_set = False

    @classmethod
    def from_linear(cls, linear: nn.Linear, moments: ClassMoments | None = None) -> EmpiricalOffset:
        """Take trained weights, without their bias; without moments, call `set_moments` next."""
        head = cls(linear.in_features, linear.out_features).to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        if moments is not None:
            head.set_moments(moments)
        return head
