r"""Weight normalisation (LA eq. 3): divide the logit of each class by a power of its scale.

    f_y / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   ν_y = π_y  (Kim & Kim, 2019)

The whole logit is divided, bias included. It multiplies where a change of prior adds, so a rare
class with a negative logit can never win (LA §4.2), and it is not consistent. A fitted τ is the one
that suits held-out samples best under a target; it makes no change of prior of it.

Carries: None.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Array, ArrayLike
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.tensors import as_tensor, per_class_tensor
from longtail.posthoc.adjuster import Affine, AffineAdjuster
from longtail.posthoc.held_out import held_out
from longtail.posthoc.tau.choice import Criterion, TauChoice, choose_tau
from longtail.posthoc.tau.paths import Scale


@dataclass(frozen=True, init=False, eq=False)
class WeightNormalization(AffineAdjuster):
    """Divides logits by ν^τ. Afterwards the scores carry no known prior.

    Attributes:
        nu: ν, one positive number a class.
        tau: 0 changes nothing.
        choice: How τ was chosen, if it was fitted.

    >>> from longtail import Scores
    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> WeightNormalization.by_prior([90, 10])(scores).logits.tolist()
    [[2.222, 10.000]]
    """

    nu: Tensor
    tau: float
    choice: TauChoice | None

    def __init__(self, nu: ArrayLike, tau: float = 1.0, choice: TauChoice | None = None) -> None:
        scales = per_class_tensor(nu, as_tensor(nu).numel(), "nu")
        vars(self).update(nu=scales, tau=check_number(tau, "tau"), choice=choice)

    @classmethod
    def by_norm(cls, weight: Array, tau: float = 1.0) -> WeightNormalization:
        """ν_y = ‖w_y‖₂ from the weight of the last linear layer, shape (C, D)."""
        rows = as_tensor(weight).detach()
        if rows.dim() != 2:
            raise ValueError(
                f"weight must be that of a linear layer, of shape (C, D), got {tuple(rows.shape)}"
            )
        return cls(
            per_class_tensor(rows.double().norm(dim=1), len(rows), "the norm of weight"), tau
        )

    @classmethod
    def by_prior(cls, prior: PriorLike, tau: float = 1.0) -> WeightNormalization:
        """ν = π, the training prior."""
        return cls(full_prior(prior, "training").probs, tau)

    def fit(
        self,
        scores: Scores,
        criterion: Criterion = "accuracy_under_target",
        target: PriorLike | None = None,
        weights: ArrayLike | None = None,
    ) -> WeightNormalization:
        """The normalisation with the τ that suits held-out scores best.

        As far as they determine it: else it stays near 1, and `choice` says so.

        Args:
            scores: Labelled, and not of the test set.
            criterion: What is made as good as possible: "accuracy_under_target" (for the uniform
                target that is balanced accuracy), "nll", "brier" or "ece".
            target: The prior under which that is meant, uniform by default.
            weights: How much each sample counts among those of its class; all the same by default.

        >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
        >>> held_out = Scores(logits, labels=[0, 0, 0, 1, 1])
        >>> WeightNormalization([2.0, 1.0]).fit(held_out).tau
        0.377
        """
        held = held_out(scores, "the tau of weight normalisation")
        self._check_classes(scores.num_classes)
        goal = Prior.uniform(scores.num_classes) if target is None else Prior.of(target)
        check_same_classes(scores.num_classes, goal, "the scores have", "the target prior")
        known = scores.carried if scores.counts is None else Prior.of(scores.counts, zeros="keep")
        chosen = choose_tau(Scale(self.nu.log()), held, goal, criterion, known, weights)
        return WeightNormalization(self.nu, chosen.tau, chosen)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The division; whatever was carried is lost."""
        self._check_classes(num_classes)
        return Affine(*Scale(self.nu.log()).affine(self.tau), carried=None)

    def _check_classes(self, num_classes: int) -> None:
        if len(self.nu) != num_classes:
            raise ValueError(f"nu has {len(self.nu)} classes, the scores have {num_classes}")
