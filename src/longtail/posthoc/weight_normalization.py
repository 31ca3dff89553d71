r"""Weight normalisation (LA eq. 3): divide the logit of each class by a power of its scale.

    f_y / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   ν_y = π_y  (Kim & Kim, 2019)

The whole logit is divided, bias included. It multiplies where a change of prior adds, so a rare
class with a negative logit can never win (LA §4.2), and it is not consistent.

Carries: None.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from longtail.core import Prior, PriorLike
from longtail.core.arrays import Array, ArrayLike, as_tensor
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import full_prior
from longtail.posthoc.adjuster import Affine, AffineAdjuster


@dataclass(frozen=True, init=False, eq=False)
class WeightNormalization(AffineAdjuster):
    """Divides logits by ν^τ. Afterwards the scores carry no known prior.

    Attributes:
        nu: ν, one positive number a class.
        tau: 0 changes nothing.

    >>> from longtail import Scores
    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> WeightNormalization.by_prior([90, 10])(scores).logits.tolist()
    [[2.222, 10.000]]
    """

    nu: Tensor
    tau: float

    def __init__(self, nu: ArrayLike, tau: float = 1.0) -> None:
        scales = check_per_class(nu, as_tensor(nu).numel(), "nu")
        vars(self).update(nu=scales, tau=check_number(tau, "tau"))

    @classmethod
    def by_norm(cls, weight: Array, tau: float = 1.0) -> WeightNormalization:
        """ν_y = ‖w_y‖₂ from the weight of the last linear layer, shape (C, D)."""
        rows = as_tensor(weight).detach()
        if rows.dim() != 2:
            raise ValueError(
                f"weight must be that of a linear layer, of shape (C, D), got {tuple(rows.shape)}"
            )
        return cls(check_per_class(rows.double().norm(dim=1), len(rows), "the norm of weight"), tau)

    @classmethod
    def by_prior(cls, prior: PriorLike, tau: float = 1.0) -> WeightNormalization:
        """ν = π, the training prior."""
        return cls(full_prior(prior, "training").probs, tau)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The division; whatever was carried is lost."""
        if len(self.nu) != num_classes:
            raise ValueError(f"nu has {len(self.nu)} classes, the scores have {num_classes}")
        return Affine(self.nu**-self.tau, torch.zeros_like(self.nu), None)
