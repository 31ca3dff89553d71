r"""Nearest class mean: no weights, only the mean feature of each class, as it is or learned on.

    NearestClassMean   f_y = −½ ‖φ(Φ) − m_y‖²                                          (NCM eq. 2)
    LearnedNCM         f_y = −½ ‖Φ − μ_y‖₂                                      (NCM §4.2, eq. 5)
    MultiNCM           f_y = −½ min_i ‖Φ − μ_y − δ_i‖₂,    i = 0 … K, δ_0 = 0         (NCM eq. 10)

    euclidean   φ(Φ) = Φ                        m_y = μ_y, the class mean
    cosine      φ(Φ) = Φ/‖Φ‖                    m_y = μ_y/‖μ_y‖, so that f_y = cos(Φ, μ_y) − 1
    cl2n        φ(Φ) = (Φ − μ)/‖Φ − μ‖          m_y = class mean of φ(Φ), μ the mean of all features

The first's distance is squared, so that euclidean is the logistic regression with weight μ_y and
bias −½‖μ_y‖² (NCM eq. 7), and the Bayes rule for N(μ_y, I). The learned ones' are not, so a sample
moves a centre by the same length from near and far (NCM eq. 6). With `adjusted_sgd` they are
trained by `losses.LogitAdjusted(counts, tau=1/8)`, the adjustment of NCM eq. 9, and still predict
the nearest centre: what is added belongs to the loss, not to the head.

The centres of MultiNCM are those of a LearnedNCM and stay; δ_1 … δ_K are shared by all classes and
trained. Since ‖x − δ‖² = ‖x‖² − 2 x·δ + ‖δ‖², all distances follow from those to the centres and
from the products Φ·δ_i and μ_y·δ_i.

Carries: uniform; once trained, what its loss and sampler say. Cross-entropy on class-balanced
batches gives uniform, the adjusted loss π^(−τ), since it adds τ·log n to batches that are uniform.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from longtail.core.numbers import check_whole
from longtail.heads.distances import distances, root, squared_distances, unit, without_autocast
from longtail.heads.head import CenterHead, SGDConfig, as_linear, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments
from longtail.heads.starts import fill_normal
from longtail.ranges import Count

NCMMetric: TypeAlias = Literal["euclidean", "cosine", "cl2n"]


class NearestClassMean(CenterHead):
    """The nearest class mean, set from class moments.

    >>> import longtail as lt
    >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 4.0]])
    >>> head = NearestClassMean(2, 2)
    >>> head.set_moments(lt.heads.class_moments(features, [0, 0, 1], num_classes=2))
    >>> head(torch.tensor([[1.0, 1.0]])).tolist()
    [[-0.5, -9.0]]
    """

    curved = "it scales the features to length one; only metric='euclidean' is linear"
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
        means = check_moments(
            moments, self.num_classes, self.dim, normalised=centred, dtype=self.centers.dtype
        )
        self._start_at(unit(means) if self.metric == "cosine" else means)
        if moments.origin is not None:
            copy_rows(self.origin, moments.origin, "origin")

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


class LearnedNCM(CenterHead):
    """Trained centres; the nearest one is predicted.

    >>> import longtail as lt
    >>> head = LearnedNCM(2, 2)
    >>> head.set_moments(lt.heads.class_moments([[0.0, 0.0], [3.0, 0.0]], [0, 1], num_classes=2))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[-2.5, -2.0]]
    """

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

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        return -0.5 * distances(wide, self.centers.to(wide.dtype))


_START = 0.1  # of the centres' own spread: small, but not all alike, or all would learn the same


class MultiNCM(CenterHead):
    """Shared displacements about fixed centres: `MultiNCM.from_learned(learned_ncm)`.

    >>> learned = LearnedNCM(1, 2)
    >>> _ = learned.load_state_dict({"centers": torch.tensor([[0.0], [10.0]])})
    >>> head = MultiNCM.from_learned(learned, num_displacements=1)
    >>> _ = head.displacements.data.fill_(4.0)
    >>> head(torch.tensor([[5.0]])).tolist()             # from 4 and from 10
    [[-0.5, -2.5]]
    """

    sgd = LearnedNCM.sgd
    adjusted_sgd = LearnedNCM.adjusted_sgd
    curved = "each class has several centres"

    def __init__(self, dim: int, num_classes: int, num_displacements: Count = 20) -> None:
        super().__init__(dim, num_classes)
        check_whole(num_displacements, "num_displacements", least=1)  # without δ_0
        self.register_buffer("centers", torch.zeros(num_classes, dim))
        self.displacements = nn.Parameter(torch.empty(num_displacements, dim))
        fill_normal(self.displacements, dim**-0.5)
        self._is_set = False

    @classmethod
    def from_learned(cls, learned: LearnedNCM, num_displacements: int = 20) -> MultiNCM:
        """Take the centres of a trained LearnedNCM, and what it carries."""
        head = cls(learned.dim, learned.num_classes, num_displacements).to(learned.centers)
        head._start_at(learned.centers.detach())
        head.carry(learned.carried)
        return head

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
    def _start_at(self, centers: Tensor) -> None:
        super()._start_at(centers)
        spread = (centers - centers.mean(dim=0)).square().sum(dim=1).mean().sqrt().item()
        fill_normal(self.displacements, _START * spread * self.dim**-0.5)


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


def nearest_linear(centers: Tensor) -> nn.Linear:
    """The linear layer that is largest for the nearest centre.

    With m their mean: weight μ_y − m and bias −½ (μ_y + m)·(μ_y − m), which differs from NCM eq. 7
    by what all classes share.
    """
    wide = centers.detach().double()
    middle = wide.mean(dim=0)
    return as_linear(wide - middle, -0.5 * (wide.square() - middle.square()).sum(1), like=centers)
