r"""The generative head: linear discriminant analysis, in closed form.

    w_k = Σ⁻¹μ_k,        w_k0 = ln P(k) − ½ μ_kᵀΣ⁻¹μ_k                                    (EO eq. 2)

If features of class k follow N(μ_k, Σ), softmax of w_k·Φ + w_k0 is the posterior (EO eq. 3). Means
are taken about their own mean m, w_k = Σ⁻¹(μ_k − m) and w_k0 = ln P(k) − ½ (μ_k + m)·w_k: the same
up to a number that all classes share, and without the digits that a large m would cost.

Σ is the scatter about the class means over N, shrunk towards a multiple of the identity,
(1−s)·Σ + s·(tr Σ/D)·I. Without shrinkage it needs more samples than dimensions.

Carries: the prior it was given; uniform without one, when ln P is left out.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core import Prior, PriorLike
from longtail.core.tensors import as_tensor
from longtail.heads.head import LinearHead, copy_rows
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments
from longtail.metrics.class_rows import ledoit_wolf_shrinkage, oas_shrinkage

Shrinkage: TypeAlias = float | Literal["ledoit_wolf", "oas"] | None


class Generative(LinearHead):
    """Gaussian classes with one covariance, set from class moments.

    `prior` is P, or None to leave it out; `shrinkage` is s, None for the equation as it is.

    >>> import longtail as lt
    >>> features = torch.tensor([[0.0, 1.0], [0.0, -1.0], [3.0, 1.0], [5.0, -1.0]])
    >>> head = Generative(2, 2, prior=[90, 10], shrinkage=None)
    >>> head.set_moments(lt.heads.class_moments(features, [0, 0, 1, 1], 2, "pooled"))
    >>> torch.softmax(head(torch.tensor([[2.0, 0.0]])), dim=1).tolist()  # midway
    [[0.9, 0.1]]
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        dim: int,
        num_classes: int,
        prior: PriorLike | None = None,
        shrinkage: Shrinkage = "oas",
    ) -> None:
        super().__init__(dim, num_classes)
        if shrinkage not in (None, "oas", "ledoit_wolf"):
            if isinstance(shrinkage, str) or not 0 <= shrinkage <= 1:
                raise ValueError(
                    "shrinkage must be None, a number in 0 to 1, 'oas' or 'ledoit_wolf', "
                    f"got {shrinkage!r}"
                )
            shrinkage = float(shrinkage)
        self.shrinkage = shrinkage
        self.prior = self._prior(prior, "generative head's")
        self.register_buffer("weight", torch.zeros(num_classes, dim))
        self.register_buffer("bias", torch.zeros(num_classes))
        self._is_set = False

    @property
    def moment_options(self) -> MomentOptions:
        """The pooled scatter; Ledoit and Wolf's shrinkage needs the fourth moment too."""
        return {"scatter": "pooled", "fourth": self.shrinkage == "ledoit_wolf"}

    def set_moments(self, moments: ClassMoments) -> None:
        """Solve for the weights; what is carried is the prior, or uniform without one."""
        means = check_moments(moments, self.num_classes, self.dim)
        middle = means.mean(dim=0)
        factor = _cholesky(shrunk_covariance(moments, self.shrinkage), self.shrinkage)
        weight = torch.cholesky_solve((means - middle).T, factor).T
        bias = -0.5 * ((means + middle) * weight).sum(dim=1)
        if self.prior is not None:
            bias = bias + as_tensor(self.prior.log)
        copy_rows(self.weight, weight, "weight")
        copy_rows(self.bias, bias, "bias")
        self._is_set = True
        self.carry(self.prior or Prior.uniform(self.num_classes))

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The weights and offsets."""
        return self.weight.to(dtype), self.bias.to(dtype)


def shrunk_covariance(moments: ClassMoments, shrinkage: Shrinkage) -> Tensor:
    """The covariance about the class means, shrunk; shape (D, D), float64."""
    if moments.scatter is None:
        raise ValueError("make the pooled scatter too: class_moments(..., scatter='pooled')")
    covariance, total = moments.scatter / moments.total, moments.total
    dim, eye = len(covariance), torch.eye(len(covariance), device="cpu").to(covariance)
    trace, square = float(covariance.trace()), float(covariance.square().sum())
    if shrinkage == "oas":
        amount = oas_shrinkage(trace, square, total, dim)
    elif shrinkage != "ledoit_wolf":
        amount = shrinkage or 0.0
    elif moments.fourth is not None:
        amount = ledoit_wolf_shrinkage(trace, square, moments.fourth, total, dim)
    else:
        raise ValueError("make the fourth moment too: class_moments(..., 'pooled', fourth=True)")
    return (1 - amount) * covariance + amount * trace / dim * eye


def _cholesky(covariance: Tensor, shrinkage: Shrinkage) -> Tensor:
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(covariance)
    sizes = factor.diagonal().square()
    if failed or not sizes.min() > len(sizes) * torch.finfo(sizes.dtype).eps * sizes.max():
        raise ValueError(
            "the covariance of the features about their class means cannot be inverted with "
            f"shrinkage={shrinkage!r}: some direction never varies, or there are too few samples; "
            "use shrinkage='oas', 'ledoit_wolf' or a number above zero"
        )
    return factor
