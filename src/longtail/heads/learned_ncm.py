r"""Learned nearest class mean: the centres are trained, from the class means on.

    LearnedNCM   f_y = −½ ‖Φ − μ_y‖₂                                            (NCM §4.2, eq. 5)
    MultiNCM     f_y = −½ min_i ‖Φ − μ_y − δ_i‖₂,    i = 0 … K, δ_0 = 0               (NCM eq. 10)

The distance is not squared, so a sample moves a centre by the same length from near and far (NCM
eq. 6); where it lies on the centre, by nothing. With `losses.LogitAdjusted(counts, tau=1/8)` it is
trained with the adjustment of NCM eq. 9 and still predicts the nearest centre: what is added
belongs to the loss, not to the head. `LearnedNCM.adjusted_sgd` says so to whoever trains it.

The centres of MultiNCM are those of a LearnedNCM and stay; δ_1 … δ_K are shared by all classes and
trained. Since ‖x − δ‖² = ‖x‖² − 2 x·δ + ‖δ‖², all distances follow from those to the centres and
from the products Φ·δ_i and μ_y·δ_i.

Carries: what its loss and sampler say. Cross-entropy on class-balanced batches gives uniform, the
adjusted loss π^(−τ), since it adds τ·log n to batches that are uniform. Before training, uniform.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.heads.distances import distances, root, squared_distances, without_autocast
from longtail.heads.head import Head, SGDConfig, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments
from longtail.ranges import Count


class LearnedNCM(Head):
    """Trained centres; the nearest one is predicted.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.

    >>> import longtail as lt
    >>> head = LearnedNCM(2, 2)
    >>> head.set_moments(lt.heads.class_moments([[0.0, 0.0], [3.0, 0.0]], [0, 1], num_classes=2))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[-2.5, -2.0]]
    """

    rows_name = "centers"
    sgd = SGDConfig(lr=5.0, clip_value=0.1, schedule="constant")
    adjusted_sgd = replace(sgd, tau=1 / 8)
    curved = (
        "its distance is not squared; its predictions, though not its logits, are those of "
        "longtail.heads.nearest_linear(head.centers)"
    )

    def __init__(self, dim: int, num_classes: int) -> None:
        super().__init__(dim, num_classes)
        self.centers = nn.Parameter(torch.zeros(num_classes, dim))
        self._is_set = False

    @property
    def moment_options(self) -> MomentOptions:
        """Class means alone."""
        return {}

    def set_moments(self, moments: ClassMoments) -> None:
        """Start at the class means."""
        means = check_moments(moments, self.num_classes, self.dim)
        copy_rows(self.centers, means, "class means")
        self._is_set = True
        self.carry(Prior.uniform(self.num_classes))

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        return -0.5 * distances(wide, self.centers.to(wide.dtype))


_START = 0.1  # of the centres' own spread: small, but not all alike, or all would learn the same


class MultiNCM(Head):
    """Shared displacements about fixed centres: `MultiNCM.from_learned(learned_ncm)`.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        num_displacements: K, without the null one.

    >>> learned = LearnedNCM(1, 2)
    >>> _ = learned.load_state_dict({"centers": torch.tensor([[0.0], [10.0]])})
    >>> head = MultiNCM.from_learned(learned, num_displacements=1)
    >>> _ = head.displacements.data.fill_(4.0)
    >>> head(torch.tensor([[5.0]])).tolist()             # from 4 and from 10
    [[-0.5, -2.5]]
    """

    rows_name = "centers"
    sgd = LearnedNCM.sgd
    adjusted_sgd = LearnedNCM.adjusted_sgd
    curved = "each class has several centres"
    centers: Tensor

    def __init__(self, dim: int, num_classes: int, num_displacements: Count = 20) -> None:
        super().__init__(dim, num_classes)
        if num_displacements < 1:
            raise ValueError(
                f"num_displacements must be at least 1 (the null one is not counted), "
                f"got {num_displacements}"
            )
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        self.displacements = nn.Parameter(torch.empty(num_displacements, dim))
        nn.init.normal_(self.displacements, std=dim**-0.5)
        self._is_set = False

    @classmethod
    def from_learned(cls, learned: LearnedNCM, num_displacements: int = 20) -> MultiNCM:
        """Take the centres of a trained LearnedNCM, and what it carries."""
        head = cls(learned.dim, learned.num_classes, num_displacements).to(learned.centers)
        head._set_centers(learned.centers.detach(), learned.carried)
        return head

    @property
    def moment_options(self) -> MomentOptions:
        """Class means alone."""
        return {}

    def set_moments(self, moments: ClassMoments) -> None:
        """Take the class means for centres, where no LearnedNCM was trained."""
        means = check_moments(moments, self.num_classes, self.dim)
        self._set_centers(means, Prior.uniform(self.num_classes))

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        with without_autocast(wide):
            centers = self.centers.to(wide.dtype)
            shifts = self.displacements.to(wide.dtype)
            from_centers = squared_distances(wide, centers)
            middle = centers.mean(dim=0)
            of_rows = -2 * (wide - middle) @ shifts.T
            of_classes = 2 * (centers - middle) @ shifts.T + shifts.square().sum(dim=1)
            return -0.5 * root(from_centers + _lowest(of_rows, of_classes))

    @torch.no_grad()
    def _set_centers(self, centers: Tensor, carried: Prior | None) -> None:
        copy_rows(self.centers, centers, "centers")
        spread = (centers - centers.mean(dim=0)).square().sum(dim=1).mean().sqrt().item()
        nn.init.normal_(self.displacements, std=_START * spread * self.dim**-0.5)
        self._is_set = True
        self.carry(carried)


def _lowest(of_rows: Tensor, of_classes: Tensor) -> Tensor:
    """The lowest of 0 and of_rows[..., i] + of_classes[:, i] over i, shape (..., C)."""
    flat = of_rows.reshape(-1, of_rows.shape[-1])
    with torch.no_grad():
        lowest = flat.new_zeros(len(flat), len(of_classes))
        which = torch.full_like(lowest, -1, dtype=torch.long)
        for i in range(flat.shape[1]):
            sums = flat[:, i, None] + of_classes[:, i]
            which.masked_fill_(sums < lowest, i)
            torch.minimum(lowest, sums, out=lowest)
    # Again for the one that is lowest, so that a gradient reaches it alone.
    taken = which.clamp(min=0)
    change = flat.gather(1, taken) + of_classes.T.gather(0, taken)
    return change.masked_fill(which < 0, 0.0).reshape(*of_rows.shape[:-1], len(of_classes))
