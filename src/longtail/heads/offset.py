r"""Heads with an offset in place of a bias: the boundary runs midway between two class centres.

    f_k = w_k·Φ − ½ c_k·w_k                                                       (EO §2.2 and §2.4)

EO eq. 2 makes the offset of a linear classifier ln π_k − ½ μ_kᵀΣ⁻¹μ_k with w_k = Σ⁻¹μ_k. Without
the first term the boundary is midway between the means (EO eq. 4), however many samples each class
had. `EmpiricalOffset` takes the class means for c, and trained weights; `EstimatedOffset` is
trained, and `losses.EstimatedOffset` moves its centres, not gradients.

Carries: uniform when set by class means. Once trained, what its loss says: that of
`losses.EstimatedOffset` is None, so measure it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longtail.heads.head import CenterHead, LinearHead, SGDConfig
from longtail.heads.moments import ClassMoments
from longtail.heads.starts import random_rows


class OffsetHead(CenterHead, LinearHead):
    """Linear logits with an offset from one centre a class, in place of a bias."""

    rows_name = "weight"

    def __init__(self, dim: int, num_classes: int, use_offset: bool = True) -> None:
        super().__init__(dim, num_classes)
        self.weight = random_rows(num_classes, dim, dim**-0.5)
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        self.use_offset = use_offset

    @property
    def offset(self) -> Tensor:
        """½ c_k·w_k of each class: what is subtracted."""
        return self._offset(self.weight)

    def _offset(self, weight: Tensor) -> Tensor:
        return 0.5 * (self.centers.to(weight) * weight).sum(dim=1)

    @property
    def waits_for_moments(self) -> bool:
        """Whether the centres are still where they were made, at zero."""
        return not self.centers.any()

    def set_moments(self, moments: ClassMoments) -> None:
        """Set the centres to the class means; with the offset the logits then carry uniform."""
        super().set_moments(moments)
        if not self.use_offset:
            self.carry(None)

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The weights, and the offset as a bias."""
        weight = self.weight.to(dtype)
        return weight, -self._offset(weight) if self.use_offset else None


class EstimatedOffset(OffsetHead):
    """Linear logits with an offset from the class centres, in place of a bias.

    Without `use_offset`, and with the uniform constraint of the loss, it is the ablation "UC only".

    >>> import torch
    >>> head = EstimatedOffset(2, 2)
    >>> _ = head.weight.data.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> _ = head.centers.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> head(torch.tensor([[2.0, 5.0]])).tolist()        # midway: the logits are equal
    [[1.5, 1.5]]
    """

    sgd = SGDConfig(lr=0.1, sampler="instance")

    @classmethod
    def from_linear(cls, linear: nn.Linear, use_offset: bool = True) -> EstimatedOffset:
        """Start from trained weights; the bias, which carries the training prior, is dropped."""
        return cls(linear.in_features, linear.out_features, use_offset)._with_weight_of(linear)


class EmpiricalOffset(OffsetHead):
    """Linear logits with the offset of the class means: `from_linear(linear, moments)`.

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
        head = cls(linear.in_features, linear.out_features)._with_weight_of(linear)
        if moments is not None:
            head.set_moments(moments)
        return head
