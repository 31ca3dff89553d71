r"""The causal-norm head: normalised in several parts, without the mean direction at test time.

With Φ and w_y cut into K parts, and u(a) = a/‖a‖,

    f_y = τ/K · Σ_k [u(Φᵏ) − α·cos(Φᵏ, cᵏ)·u(cᵏ)] · w_yᵏ / (‖w_yᵏ‖ + γ)

where c is a running mean of the features seen in training, which momentum and the many samples of
head classes turn towards the head. In training the bracket is u(Φᵏ) alone. Only c's direction
counts, so the running mean is a usual one, (1−m) times that of the released code.

Carries: None. LADE adds log p_t − log p_u to it as if it carried uniform; measure it instead.
Tang, Huang and Zhang, NeurIPS 2020: the total direct effect (TDE).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.core.numbers import check_number
from longtail.heads.distances import root, unit
from longtail.heads.head import Head, SGDConfig, copy_rows
from longtail.ranges import Count, FractionBelowOne, NonNegative, Positive


class CausalNorm(Head):
    """Multi-head normalised logits; evaluation mode subtracts the effect of the mean direction.

    Args:
        dim: The features' dimension, a multiple of `num_heads`.
        num_classes: How many classes there are.
        num_heads: K.
        tau: τ, the scale.
        alpha: α, how much of the mean direction is removed.
        gamma: γ, which keeps short weights short.
        momentum: m of the running mean.

    >>> head = CausalNorm(2, 2, num_heads=1, gamma=0.0)
    >>> _ = head.weight.data.copy_(torch.tensor([[2.0, 0.0], [0.0, 5.0]]))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[9.6, 12.8]]
    >>> _ = head.train(False).mean_feature.copy_(torch.tensor([0.0, 7.0]))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[9.6, -25.6]]
    """

    sgd = SGDConfig(lr=0.2, weight_decay=5e-4, sampler="instance")
    takes_prior = False
    curved = "it divides by the length of the features"
    mean_feature: Tensor

    def __init__(
        self,
        dim: int,
        num_classes: int,
        num_heads: Count = 2,
        tau: Positive = 16.0,
        alpha: NonNegative = 3.0,
        gamma: NonNegative = 0.03125,
        momentum: FractionBelowOne = 0.9,
    ) -> None:
        super().__init__(dim, num_classes)
        if num_heads < 1 or dim % num_heads:
            raise ValueError(
                f"num_heads must divide the dimension {dim} of the features, got {num_heads}"
            )
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in 0 to below 1, got {momentum}")
        self.num_heads = num_heads
        self.tau = check_number(tau, "tau")
        self.alpha = check_number(alpha, "alpha")
        self.gamma = check_number(gamma, "gamma", least=0.0)
        self.momentum = momentum
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.register_buffer("mean_feature", torch.zeros(dim))

    @classmethod
    def from_linear(cls, linear: nn.Linear, num_heads: int = 2, **options: float) -> CausalNorm:
        """Start from trained weights; the bias is dropped. Options as of the head itself."""
        head = cls(linear.in_features, linear.out_features, num_heads, **options)
        head = head.to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        return head

    def forward(self, features: Tensor) -> Tensor:
        """The logits; in training mode the running mean follows the features."""
        wide = self._widened(features)
        directions = unit(self._parts(wide))
        if self.training:
            self._follow(wide.detach())
        else:
            mean = unit(self._parts(self.mean_feature.to(wide.dtype)))
            along = (directions * mean).sum(dim=-1, keepdim=True)
            directions = directions - self.alpha * along * mean
        weight = self._parts(self.weight.to(wide.dtype))
        norms = root(weight.square().sum(dim=-1, keepdim=True))
        weight = weight / (norms + self.gamma).clamp_min(torch.finfo(wide.dtype).tiny)
        scale = self.tau / self.num_heads
        return scale * F.linear(directions.flatten(-2), weight.flatten(-2))

    def _parts(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:-1], self.num_heads, self.dim // self.num_heads)

    @torch.no_grad()
    def _follow(self, features: Tensor) -> None:
        if not features.numel():
            return
        mean = features.reshape(-1, self.dim).mean(dim=0).to(self.mean_feature)
        self.mean_feature.lerp_(mean, 1 - self.momentum)
