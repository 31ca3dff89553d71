r"""Weight normalisation (LA eq. 3): divide the logit of each class by a power of its scale.

    f_y / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   ν_y = π_y  (Kim & Kim, 2019)

The whole logit is divided, bias included. It multiplies where a change of prior adds, so a rare
class with a negative logit can never win (LA §4.2), and it is not consistent.

Carries: None.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from longtail.core import PriorLike, Scores
from longtail.core.arrays import Array, ArrayLike, as_kind_of, as_tensor, wide_dtype
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import full_prior


@dataclass(frozen=True, init=False, eq=False)
class WeightNormalization:
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

    def __call__(self, scores: Scores) -> Scores:
        """The normalised scores."""
        if len(self.nu) != scores.num_classes:
            raise ValueError(f"nu has {len(self.nu)} classes, the scores have {scores.num_classes}")
        logits = as_tensor(scores.logits)
        wide = wide_dtype(logits.dtype)
        divided = logits.to(wide) / (self.nu**self.tau).to(logits.device, wide)
        moved = as_kind_of(divided.to(logits.dtype), scores.logits)
        return replace(scores, logits=moved, carried=None)
