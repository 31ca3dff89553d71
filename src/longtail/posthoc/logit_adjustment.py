r"""Moves to another prior: post-hoc logit adjustment (LA eq. 9) and PC Softmax (LADE eq. 4).

Logit adjustment subtracts τ·log π from the logits of a trained model,

    f_y − τ·log π_y,        or towards another target than uniform  f_y + τ·(log t_y − log π_y).

It carries π^(1−τ)·t^τ, the target at τ = 1, if the logits carried π before. If τ was fitted on
held-out samples under the target: the target. Logits that carry anything else than π were adjusted
already or trained by an adjusting loss, and are refused. PC Softmax is the whole move from whatever
the scores carry,

    f_y − log p_s(y) + log p_t(y),        or  f_y + log p_t(y) − log p_u(y)  where f carries p_u,

exact by LADE's theorem 1, and carries the target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.retarget import prior_offset
from longtail.posthoc.adjuster import Affine, AffineAdjuster
from longtail.posthoc.tau import Criterion, TauChoice
from longtail.posthoc.tau.paths import Shift
from longtail.posthoc.validation import check_validation


@dataclass(frozen=True, init=False, eq=False)
class LogitAdjustment(AffineAdjuster):
    """Moves scores that carry the training prior towards the target, by τ.

    Attributes:
        prior: The training prior π: a Prior or class counts.
        tau: 1 reaches the target, 0 changes nothing.
        target: The prior to move to, uniform by default. A class it rules out is ruled out at
            every τ.
        choice: How τ was chosen, if it was fitted.

    >>> from longtail import Scores
    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> adjusted = LogitAdjustment([90, 10])(scores)
    >>> adjusted.predict().tolist(), adjusted.carried
    ([1], Prior([0.5, 0.5]))
    """

    prior: Prior
    tau: float
    target: Prior
    choice: TauChoice | None

    def __init__(
        self,
        prior: PriorLike,
        tau: float = 1.0,
        target: PriorLike | None = None,
        choice: TauChoice | None = None,
    ) -> None:
        source = full_prior(prior, "training")
        goal = Prior.uniform(source.num_classes) if target is None else Prior.of(target)
        check_same_classes(source.num_classes, goal, "the training prior has", "the target prior")
        vars(self).update(prior=source, tau=check_number(tau, "tau"), target=goal, choice=choice)

    @classmethod
    def fit(
        cls,
        scores: Scores,
        prior: PriorLike | None = None,
        target: PriorLike | None = None,
        criterion: Criterion = "accuracy_under_target",
        weights: ArrayLike | None = None,
    ) -> LogitAdjustment:
        """The adjustment with the τ that suits held-out scores best under the target.

        As far as they determine it: else it stays near 1, and `choice` says so.

        Args:
            scores: Labelled, not of the test set, and carrying the training prior.
            prior: The training prior, so that scores that do not carry it are refused; what the
                scores carry by default.
            target: The prior to move to, uniform by default.
            criterion: What is made as good as possible: "accuracy_under_target" (for the uniform
                target that is balanced accuracy), "nll", "brier" or "ece".
            weights: How much each sample counts among those of its class; all the same by default.

        >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
        >>> validation = Scores(logits, labels=[0, 0, 0, 1, 1], carried=[90, 10])
        >>> fitted = LogitAdjustment.fit(validation)
        >>> fitted.tau, fitted.choice.optimum, fitted.choice.trust
        (0.680, 0.387, 0.522)
        >>> fitted(validation).carried
        Prior([0.5, 0.5])
        """
        from longtail.posthoc.tau.choice import choose_tau

        held = check_validation(scores, "the tau of logit adjustment")
        move = cls(_required(held.carried) if prior is None else prior, target=target)
        move._check_carried(held.carried)
        choice = choose_tau(move._path, held, move.target, criterion, move.prior, weights)
        return cls(move.prior, choice.tau, move.target, choice)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The move; a ValueError if it would count the prior twice."""
        self._check_carried(carried)
        scale, shift = self._path.affine(self.tau)
        reached = self.target if self.choice else Prior.from_log(self.prior.log + shift)
        return Affine(scale, shift, reached)

    @property
    def _path(self) -> Shift:
        return Shift(prior_offset(self.prior, self.target))

    def _check_carried(self, carried: Prior | None) -> None:
        if not _required(carried).is_close(self.prior):
            raise ValueError(
                f"logit adjustment starts from scores that carry {self.prior!r}, but these carry "
                f"{carried!r}: they were adjusted already, or trained by a loss that does "
                "it; adjusting again would count the prior twice. Use scores.under(target)"
            )


@dataclass(frozen=True, init=False, eq=False)
class PCSoftmax(AffineAdjuster):
    """`scores.under(target)` as an adjuster, to stand in a row with others.

    >>> scores = Scores([[0.0, 0.0]], carried=[50, 50])
    >>> PCSoftmax([20, 80])(scores).probs().tolist()
    [[0.200, 0.800]]
    """

    target: Prior

    def __init__(self, target: PriorLike) -> None:
        vars(self).update(target=Prior.of(target))

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The move from what is carried to the target."""
        shift = prior_offset(carried, self.target)
        return Affine(np.ones_like(shift), shift, self.target)


def _required(carried: Prior | None) -> Prior:
    if carried is None:
        raise UnknownPriorError("these scores carry no known prior")
    return carried
