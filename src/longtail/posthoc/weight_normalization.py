r"""Weight normalisation (LA eq. 3): divide the logit of each class by a power of its scale.

    f_y / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   ν_y = π_y  (Kim & Kim, 2019)

The whole logit is divided, bias included. It multiplies where a change of prior adds, so a rare
class with a negative logit can never win (LA §4.2), and it is not consistent. A fitted τ is the one
that suits held-out samples best under a target; it makes no change of prior of it.

Carries: None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Array, ArrayLike, as_numpy
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import check_same_classes, full_prior
from longtail.posthoc.adjuster import Affine, AffineAdjuster, Floats
from longtail.posthoc.tau import Criterion, TauChoice
from longtail.posthoc.tau.paths import Scale
from longtail.posthoc.validation import check_validation


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

    nu: Floats
    tau: float
    choice: TauChoice | None

    def __init__(self, nu: ArrayLike, tau: float = 1.0, choice: TauChoice | None = None) -> None:
        scales = check_per_class(nu, as_numpy(nu).size, "nu")
        vars(self).update(nu=scales, tau=check_number(tau, "tau"), choice=choice)

    @classmethod
    def by_norm(cls, weight: Array, tau: float = 1.0) -> WeightNormalization:
        """ν_y = ‖w_y‖₂ from the weight of the last linear layer, shape (C, D)."""
        rows = as_numpy(weight).astype(np.float64)
        if rows.ndim != 2:
            raise ValueError(
                f"weight must be that of a linear layer, of shape (C, D), got {rows.shape}"
            )
        norms = np.sqrt(np.square(rows).sum(axis=1))
        return cls(check_per_class(norms, len(rows), "the norm of weight"), tau)

    @classmethod
    def by_prior(cls, prior: PriorLike, tau: float = 1.0) -> WeightNormalization:
        """ν = π, the training prior."""
        return cls(full_prior(prior, "training").probs, tau)

    @classmethod
    def fit(
        cls,
        scores: Scores,
        nu: ArrayLike,
        target: PriorLike | None = None,
        criterion: Criterion = "accuracy_under_target",
        weights: ArrayLike | None = None,
    ) -> WeightNormalization:
        """The normalisation with the τ that suits held-out scores best.

        As far as they determine it: else it stays near 1, and `choice` says so.

        Args:
            scores: Labelled, and not of the test set.
            nu: ν, one positive number a class: `by_norm(weight).nu` or `by_prior(prior).nu`.
            target: The prior under which the criterion is meant, uniform by default.
            criterion: What is made as good as possible: "accuracy_under_target" (for the uniform
                target that is balanced accuracy), "nll", "brier" or "ece".
            weights: How much each sample counts among those of its class; all the same by default.

        >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
        >>> validation = Scores(logits, labels=[0, 0, 0, 1, 1])
        >>> WeightNormalization.fit(validation, nu=[2.0, 1.0]).tau
        0.377
        """
        from longtail.posthoc.tau.choice import choose_tau

        held, divide = check_validation(scores, "the tau of weight normalisation"), cls(nu)
        divide._check_classes(scores.num_classes)
        goal = Prior.uniform(scores.num_classes) if target is None else Prior.of(target)
        check_same_classes(scores.num_classes, goal, "the scores have", "the target prior")
        train = scores.carried if scores.counts is None else Prior.of(scores.counts, zeros="keep")
        choice = choose_tau(divide._path, held, goal, criterion, train, weights)
        return cls(divide.nu, choice.tau, choice)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The division; whatever was carried is lost."""
        self._check_classes(num_classes)
        return Affine(*self._path.affine(self.tau), carried=None)

    @property
    def _path(self) -> Scale:
        return Scale(np.log(self.nu))

    def _check_classes(self, num_classes: int) -> None:
        if len(self.nu) != num_classes:
            raise ValueError(f"nu has {len(self.nu)} classes, the scores have {num_classes}")
