r"""Nearest class mean under a learned metric, d_xy in logits −½·d_xy.

    global       d_xy = ‖W (Φ − μ_y)‖²                                                 (NCM eq. 3)
    per_class    d_xy = ‖W_y (Φ − μ_y)‖²                                     (NCM A.3, Table 5)
    eigenbasis   d_xy = (Φ − μ_y)ᵀ Q_y diag σ(w_y) Q_yᵀ (Φ − μ_y)                      (NCM eq. 4)

Q_y are the eigenvectors of class y's covariance Q_y Δ_y Q_yᵀ, those of small eigenvalues first; eq.
4 prints QᵀΔ̂Q, which would not be coordinates in that basis. `projections` are σ(w), the share of
each direction, which the paper draws (fig. 3). W starts as the identity, w at zero.

The last two are Σ_k s_yk·((Φ − μ_y)ᵀ M_y)_k², a few classes at a time. When gradients are wanted
they are computed again going backward: the N × C × D coordinates are never there at once.

Carries: what its loss and sampler say; before training, uniform.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longtail.core.blocks import BLOCK, slices
from longtail.heads.distances import squared_distances, without_autocast
from longtail.heads.head import CenterHead, SGDConfig, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions
from longtail.heads.starts import random_directions

Metric: TypeAlias = Literal["global", "per_class", "eigenbasis"]


class MetricNCM(CenterHead):
    """Nearest class mean with a trained metric and, as in Table 5, trained centres.

    `rank` is the number of rows of W, for a projection to fewer dimensions; by default `dim`.
    Without `learn_centers` the centres stay the class means (eq. 3, 4).

    >>> import longtail as lt
    >>> head = MetricNCM(2, 2)
    >>> head.set_moments(lt.heads.class_moments([[0.0, 0.0], [3.0, 0.0]], [0, 1], num_classes=2))
    >>> _ = head.map.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.5]]))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[-6.5, -2.0]]
    """

    sgd = SGDConfig(lr=0.01, clip_value=0.1)
    curved = "each class has a metric of its own; only metric='global' is linear"
    map: nn.Parameter
    basis: Tensor
    projection: nn.Parameter

    def __init__(
        self,
        dim: int,
        num_classes: int,
        metric: Metric = "global",
        rank: int | None = None,
        learn_centers: bool = True,
    ) -> None:
        super().__init__(dim, num_classes)
        if metric not in ("global", "per_class", "eigenbasis"):
            raise ValueError(
                f'metric must be "global", "per_class" or "eigenbasis", got {metric!r}'
            )
        if rank is not None and (metric == "eigenbasis" or not 1 <= rank <= dim):
            raise ValueError(
                f"rank must lie in 1 to dim={dim}, and eigenbasis has none, got {rank} for {metric}"
            )
        self.metric = metric
        self.centers = nn.Parameter(torch.zeros(num_classes, dim), requires_grad=learn_centers)
        if metric == "eigenbasis":
            self.register_buffer("basis", torch.eye(dim).repeat(num_classes, 1, 1))
            self.projection = nn.Parameter(torch.zeros(num_classes, dim))
        else:
            start = torch.eye(dim)
            if rank is not None and rank < dim:  # some orthogonal directions
                start = random_directions(rank, dim)
            several = start if metric == "global" else start.repeat(num_classes, 1, 1)
            self.map = nn.Parameter(several)
        self._is_set = False

    @property
    def projections(self) -> Tensor:
        """σ(w) of eigenbasis, shape (C, D): how much each eigen-direction of a class counts."""
        return torch.sigmoid(self.projection)

    @property
    def moment_options(self) -> MomentOptions:
        """Class means; for eigenbasis the scatter of each class, C matrices of D × D."""
        return {"scatter": "per_class" if self.metric == "eigenbasis" else "none"}

    def set_moments(self, moments: ClassMoments) -> None:
        """Start at the class means, and take the eigenvectors of the classes' covariances."""
        if self.metric == "eigenbasis":
            if moments.scatters is None:
                raise ValueError("make each class's scatter too: class_moments(..., 'per_class')")
            for label, scatter in enumerate(moments.scatters):
                copy_rows(self.basis[label], torch.linalg.eigh(scatter)[1], "eigenvectors")
        super().set_moments(moments)

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        dtype = wide.dtype
        centers = self.centers.to(dtype)
        with without_autocast(wide):
            if self.metric == "global":
                mapping = self.map.to(dtype).T
                return -0.5 * squared_distances(wide @ mapping, centers @ mapping)
            if self.metric == "per_class":
                return -0.5 * _class_squares(wide, centers, self.map.to(dtype).mT)
            shares = self.projections.to(dtype)
            return -0.5 * _class_squares(wide, centers, self.basis.to(dtype), shares)

    def linear_map(self) -> tuple[Tensor, Tensor | None]:
        """For global, that of these logits up to a number a sample (NCM eq. 7)."""
        if self.metric != "global":
            return super().linear_map()
        wide, mapping = self.centers.detach().double(), self.map.detach().double()
        middle = wide.mean(dim=0)
        weight = (wide - middle) @ mapping.T @ mapping
        return weight, -0.5 * ((wide + middle) * weight).sum(dim=1)


def _class_squares(
    features: Tensor, centers: Tensor, maps: Tensor, shares: Tensor | None = None
) -> Tensor:
    """The distances (..., C) by maps M of shape (C, D, r) and shares s of shape (C, r)."""
    rows = features.reshape(-1, features.shape[-1])
    parts = []
    for at in slices(len(centers), rows.numel(), BLOCK):
        block = (rows, centers[at], maps[at], None if shares is None else shares[at])
        if torch.is_grad_enabled():
            parts.append(checkpoint(_squares, *block, use_reentrant=False))
        else:
            parts.append(_squares(*block))
    return torch.cat(parts).T.reshape(*features.shape[:-1], len(centers))


def _squares(rows: Tensor, centers: Tensor, maps: Tensor, shares: Tensor | None) -> Tensor:
    squares = torch.bmm(rows - centers.unsqueeze(1), maps).square()
    if shares is None:
        return squares.sum(dim=2)
    return torch.bmm(squares, shares.unsqueeze(2)).squeeze(2)
