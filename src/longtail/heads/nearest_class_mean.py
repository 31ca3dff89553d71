r"""Nearest class mean: no weights, only the mean feature of each class.

    f_y = −½ ‖φ(Φ) − m_y‖²                                                             (NCM eq. 2)

    euclidean   φ(Φ) = Φ                        m_y = μ_y, the class mean
    cosine      φ(Φ) = Φ/‖Φ‖                    m_y = μ_y/‖μ_y‖, so that f_y = cos(Φ, μ_y) − 1
    cl2n        φ(Φ) = (Φ − μ)/‖Φ − μ‖          m_y = class mean of φ(Φ), μ the mean of all features

The distance is squared, so that euclidean is the logistic regression with weight μ_y and bias
−½‖μ_y‖² (NCM eq. 7), and the Bayes rule for N(μ_y, I); the nearest mean is the same either way.

Carries: uniform.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.heads.distances import squared_distances, unit
from longtail.heads.head import Head, as_linear, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments

NCMMetric: TypeAlias = Literal["euclidean", "cosine", "cl2n"]


class NearestClassMean(Head):
    """The nearest class mean, set from class moments.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        metric: "euclidean", "cosine" or "cl2n" (centred, then scaled to length one).

    >>> import longtail as lt
    >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 4.0]])
    >>> head = NearestClassMean(2, 2)
    >>> head.set_moments(lt.heads.class_moments(features, [0, 0, 1], num_classes=2))
    >>> head(torch.tensor([[1.0, 1.0]])).tolist()
    [[-0.5, -9.0]]
    """

    rows_name = "centers"
    curved = "it scales the features to length one; only metric='euclidean' is linear"
    centers: Tensor
    origin: Tensor

    def __init__(self, dim: int, num_classes: int, metric: NCMMetric = "euclidean") -> None:
        super().__init__(dim, num_classes)
        if metric not in ("euclidean", "cosine", "cl2n"):
            raise ValueError(f'metric must be "euclidean", "cosine" or "cl2n", got {metric!r}')
        self.metric = metric
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        if metric == "cl2n":
            self.register_buffer("origin", torch.zeros(dim))
        self._is_set = False

    @property
    def moment_options(self) -> MomentOptions:
        """Class means; for cl2n those of centred and scaled features."""
        return {"normalise": self.metric == "cl2n"}

    def set_moments(self, moments: ClassMoments) -> None:
        """Take the class means."""
        centred = self.metric == "cl2n"
        means = check_moments(moments, self.num_classes, self.dim, normalised=centred)
        copy_rows(self.centers, unit(means) if self.metric == "cosine" else means, "class means")
        if moments.origin is not None:
            copy_rows(self.origin, moments.origin, "origin")
        self._is_set = True
        self.carry(Prior.uniform(self.num_classes))

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        if self.metric == "cl2n":
            wide = wide - self.origin.to(wide.dtype)
        rows = wide if self.metric == "euclidean" else unit(wide)
        return -0.5 * squared_distances(rows, self.centers.to(rows.dtype))

    def linear_map(self) -> tuple[Tensor, Tensor | None]:
        """For euclidean, that of these logits up to a number a sample (NCM eq. 7)."""
        if self.metric != "euclidean":
            return super().linear_map()
        layer = nearest_linear(self.centers.double())
        return layer.weight, layer.bias


def nearest_linear(centers: Tensor) -> nn.Linear:
    """The linear layer that is largest for the nearest centre.

    With m their mean: weight μ_y − m and bias −½ (μ_y + m)·(μ_y − m), which differs from NCM eq. 7
    by what all classes share.
    """
    wide = centers.detach().double()
    middle = wide.mean(dim=0)
    return as_linear(wide - middle, -0.5 * (wide.square() - middle.square()).sum(1), like=centers)
