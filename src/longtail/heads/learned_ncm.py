r"""Learned nearest class mean: the centres are trained, from the class means on.

    f_y = −½ ‖Φ − μ_y‖₂                                                          (NCM §4.2, eq. 5)

The distance is not squared, so a sample moves a centre by the same length from near and far (NCM
eq. 6); where it lies on the centre, by nothing. With `losses.LogitAdjusted(counts, tau=1/8)` it is
trained with the adjustment of NCM eq. 9 and still predicts the nearest centre: what is added
belongs to the loss, not to the head. `LearnedNCM.adjusted_recipe` says so to whoever trains it.

Carries: what its loss and sampler say. Cross-entropy on class-balanced batches gives uniform, the
adjusted loss π^(−τ), since it adds τ·log n to batches that are uniform. Before training, uniform.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.heads.distances import distances
from longtail.heads.head import Head, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments
from longtail.heads.recipe import Recipe


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

    recipe = Recipe(lr=5.0, clip_value=0.1, schedule="constant")
    adjusted_recipe = replace(recipe, tau=1 / 8)
    curved = (
        "its distance is not squared; its predictions, though not its logits, are those of "
        "longtail.heads.nearest_linear(head.centers)"
    )

    def __init__(self, dim: int, num_classes: int) -> None:
        super().__init__(dim, num_classes)
        self.centers = nn.Parameter(torch.zeros(num_classes, dim))
        self._is_set = False

    @property
    def rows(self) -> Tensor:
        """The centres."""
        return self.centers

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
        wide = self.widened(features)
        return -0.5 * distances(wide, self.centers.to(wide.dtype))
