r"""What the empirical and the estimated offset share: f_k = w_k·Φ − ½ c_k·w_k."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.heads.head import LinearHead, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments


class OffsetHead(LinearHead):
    """Linear logits with an offset from one centre a class, in place of a bias."""

    centers: Tensor

    def __init__(self, dim: int, num_classes: int, use_offset: bool = True) -> None:
        super().__init__(dim, num_classes)
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        self.use_offset = use_offset

    @property
    def rows(self) -> Tensor:
        """The weights."""
        return self.weight

    @property
    def offset(self) -> Tensor:
        """½ c_k·w_k of each class: what is subtracted."""
        return 0.5 * (self.centers * self.weight).sum(dim=1)

    @property
    def moment_options(self) -> MomentOptions:
        """Class means alone."""
        return {}

    @property
    def waits_for_moments(self) -> bool:
        """Whether the centres are still where they were made, at zero."""
        return not self.centers.any()

    def set_moments(self, moments: ClassMoments) -> None:
        """Set the centres to the class means; with the offset the logits then carry uniform."""
        means = check_moments(moments, self.num_classes, self.dim)
        copy_rows(self.centers, means, "class means")
        self._is_set = True
        self.carry(Prior.uniform(self.num_classes) if self.use_offset else None)

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The weights, and the offset as a bias."""
        weight = self.weight.to(dtype)
        if not self.use_offset:
            return weight, None
        return weight, -0.5 * (self.centers.to(dtype) * weight).sum(dim=1)
