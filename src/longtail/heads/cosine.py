r"""Cosine heads: directions count, neither the length of weights nor that of features.

    Cosine       f_y = s · u(w_y)·u(Φ),        u(a) = a/‖a‖
    CausalNorm   f_y = τ/K · Σ_k [u(Φᵏ) − α·cos(Φᵏ, cᵏ)·u(cᵏ)] · w_yᵏ / (‖w_yᵏ‖ + γ)

In the latter, Φ and w_y are cut into K parts (`num_heads`), γ keeps short weights short, and c is a
running mean of the features seen in training with momentum m, which turns towards head classes. In
training the bracket is u(Φᵏ) alone; at test time α times the effect of the mean direction is taken
away (Tang, Huang and Zhang, NeurIPS 2020: the total direct effect, TDE). Only c's direction counts,
so the running mean is a usual one, (1−m) times that of the released code.

Carries: Cosine what its loss and sampler say. CausalNorm None: LADE adds log p_t − log p_u to it as
if it carried uniform; measure it instead.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.core.numbers import check_number
from longtail.heads.distances import root, unit
from longtail.heads.head import CRT, Head, SGDConfig
from longtail.heads.starts import random_rows
from longtail.ranges import Count, FractionBelowOne, NonNegative, Positive


class Cosine(Head):
    """s·cos(w, Φ), s trained too if `learn_scale` says so.

    s sets how sure the largest logit can be. It is 1 for `losses.LDAM`, which multiplies by its own
    unless told that the head does.

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
        self.weight = random_rows(num_classes, dim, dim**-0.5)
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
        head = cls(linear.in_features, linear.out_features, scale, learn_scale)
        return head._with_weight_of(linear)

    def forward(self, features: Tensor) -> Tensor:
        """The logits; zero for features that are zero."""
        wide = self._widened(features)
        cosines = F.linear(unit(wide), unit(self.weight.to(wide.dtype)))
        return self.scale.to(cosines.dtype) * cosines


class CausalNorm(Head):
    """Multi-head normalised logits; evaluation mode subtracts the effect of the mean direction.

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
            raise ValueError(f"num_heads must divide the dimension {dim}, got {num_heads}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in 0 to below 1, got {momentum}")
        self.num_heads, self.momentum = num_heads, momentum
        self.tau, self.alpha = check_number(tau, "tau"), check_number(alpha, "alpha")
        self.gamma = check_number(gamma, "gamma", least=0.0)
        self.weight = random_rows(num_classes, dim, dim**-0.5)
        self.register_buffer("mean_feature", torch.zeros(dim))

    @classmethod
    def from_linear(cls, linear: nn.Linear, num_heads: int = 2, **options: float) -> CausalNorm:
        """Start from trained weights; the bias is dropped. Options as of the head itself."""
        head = cls(linear.in_features, linear.out_features, num_heads, **options)
        return head._with_weight_of(linear)

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
