r"""Several heads side by side, each on its own part of the features: what experts end in.

    f^k = s·cos(w^k, Φ^k)  or  w^k·Φ^k + b^k,    Φ = (Φ¹, …, Φ^K);    f = Σ_k v_k f^k

While it trains it gives the logits of all experts, for `losses.Experts`; in evaluation their mean,
v = 1/K, which is their product of probabilities up to a constant (Aimar et al., CVPR 2023), or with
the weights v of `posthoc.expert_weights`.

Carries: what its loss and sampler say of the mean; with weights Π_k c_k^{v_k} if f^k carries c_k.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_whole
from longtail.core.tensors import as_tensor
from longtail.heads.distances import unit
from longtail.heads.head import Head
from longtail.heads.starts import random_rows
from longtail.ranges import Count, Positive

Kind = Literal["cosine", "linear"]


class Experts(Head):
    """K heads of `dim / K` features each.

    `dim` is that of the features of all experts together, `scale` that of cosine heads.

    >>> head = Experts(dim=6, num_classes=4, num_experts=3)
    >>> features = torch.ones(5, 6)
    >>> head(features).shape, head.train(False)(features).shape
    (torch.Size([5, 4, 3]), torch.Size([5, 4]))
    """

    scale: Tensor
    expert_weights: Tensor | None  # v; None for all alike
    curved = "its experts may divide by the length of their features"

    def __init__(
        self,
        dim: int,
        num_classes: int,
        num_experts: Count = 3,
        kind: Kind = "cosine",
        scale: Positive = 30.0,
    ) -> None:
        super().__init__(dim, num_classes)
        if check_whole(num_experts, "num_experts", least=1) and dim % num_experts:
            raise ValueError(f"dim must be a multiple of num_experts={num_experts}, got {dim}")
        if kind not in get_args(Kind):
            raise ValueError(f'kind must be "cosine" or "linear", got {kind!r}')
        self.num_experts, self.kind = num_experts, kind
        self.weight = random_rows(num_classes, dim, (dim // num_experts) ** -0.5)
        if kind == "cosine":
            self._hold("scale", torch.tensor(check_number(scale, "scale")))
        else:
            self.bias = nn.Parameter(torch.zeros(num_classes, num_experts))
        self._hold("expert_weights", None)

    def weigh(self, weights: ArrayLike) -> None:
        """Let experts count by these weights in evaluation; say what is then carried by `carry`."""
        shares = as_tensor(weights).double()
        if shares.shape != (self.num_experts,) or not bool(
            (shares >= 0).all() & (shares.sum() > 0)
        ):
            raise ValueError(
                f"weights must be a number for each of {self.num_experts} experts, none negative "
                f"and one above zero, got {weights!r}"
            )
        self._hold("expert_weights", shares / shares.sum())
        self.carry(None)

    def each(self, features: Tensor) -> Tensor:
        """The logits of each expert, shape (..., C, K)."""
        wide = self._widened(features)
        apart = (self.num_experts, self.dim // self.num_experts)
        parts = wide.reshape(*wide.shape[:-1], *apart)
        weight = self.weight.to(wide.dtype).view(self.num_classes, *apart)
        if self.kind == "cosine":
            parts, weight = unit(parts), unit(weight)
        products = torch.einsum("...kd,ckd->...ck", parts, weight)
        if self.kind == "linear":
            return products + self.bias.to(wide.dtype)
        return self.scale.to(wide.dtype) * products

    def forward(self, features: Tensor) -> Tensor:
        """The logits of each expert while it trains, else their mean."""
        logits = self.each(features)
        if self.training:
            return logits
        weights = self.expert_weights
        return logits.mean(dim=-1) if weights is None else logits @ weights.to(logits)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        weighted = f"{prefix}expert_weights" in state_dict
        self._hold("expert_weights", torch.zeros(self.num_experts) if weighted else None)
        super()._load_from_state_dict(state_dict, prefix, *rest)
