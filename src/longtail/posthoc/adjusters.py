r"""Moves to another prior, whole or by τ, and weight normalisation by τ.

Logit adjustment (LA eq. 9) subtracts τ·log π from the logits of a trained model,

    f_y − τ·log π_y,        or towards another target than uniform  f_y + τ·(log t_y − log π_y).

It carries π^(1−τ)·t^τ, the target at τ = 1, if the logits carried π before; if τ was fitted under
the target: the target. Logits that carry anything else than π were adjusted already or trained by
an adjusting loss, and are refused. PC Softmax (LADE eq. 4) is the whole move from what is carried,

    f_y − log p_s(y) + log p_t(y),        or  f_y + log p_t(y) − log p_u(y)  where f carries p_u,

exact by LADE's theorem 1, and carries the target. Weight normalisation (LA eq. 3) divides,

    f_y / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   ν_y = π_y  (Kim & Kim, 2019),

the whole logit, bias included. It multiplies where a change of prior adds, so a rare class with a
negative logit can never win (LA §4.2), and it is not consistent, whatever τ. It carries None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.arrays import Array, ArrayLike, Floats, as_numpy
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import full_prior, target_prior
from longtail.core.retarget import prior_offset
from longtail.posthoc.adjuster import Affine, AffineAdjuster
from longtail.posthoc.tau import Criterion, TauChoice
from longtail.posthoc.tau.paths import Scale, Shift
from longtail.posthoc.validation import check_validation


@dataclass(frozen=True, init=False, eq=False)
class LogitAdjustment(AffineAdjuster):
    """Moves scores that carry the training prior towards the target, by τ.

    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> adjusted = LogitAdjustment([90, 10])(scores)
    >>> adjusted.predict().tolist(), adjusted.carried
    ([1], Prior([0.5, 0.5]))
    """

    prior: Prior  # of training
    tau: float  # 1 reaches the target, 0 changes nothing
    target: Prior  # uniform by default; a class it rules out is ruled out at every τ
    choice: TauChoice | None  # how τ was chosen, if it was fitted

    def __init__(
        self,
        prior: PriorLike,
        tau: float = 1.0,
        target: PriorLike | None = None,
        choice: TauChoice | None = None,
    ) -> None:
        source = full_prior(prior, "training")
        goal = target_prior(target, source.num_classes, "the training prior has")
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
        """The adjustment with the τ that suits validation scores best under the target.

        As far as they determine it: else it stays near 1, and `choice` says so.

        The scores are labelled, not of the test set, and carry the training prior; those that do
        not carry `prior` are refused. The target is uniform by default, where accuracy under it is
        balanced accuracy. `weights` are how much each sample counts among those of its class.

        >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
        >>> validation = Scores(logits, labels=[0, 0, 0, 1, 1], carried=[90, 10])
        >>> fitted = LogitAdjustment.fit(validation)
        >>> fitted.tau, fitted.choice.optimum, fitted.choice.trust
        (0.680, 0.387, 0.522)
        """
        from longtail.posthoc.tau.choice import choose_tau

        validation = check_validation(scores, "the tau of logit adjustment")
        move = cls(_required(validation.carried) if prior is None else prior, target=target)
        move._check_carried(validation.carried)
        choice = choose_tau(move._path, validation, move.target, criterion, move.prior, weights)
        return cls(move.prior, choice.tau, move.target, choice)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The move; a ValueError if it would count the prior twice."""
        self._check_carried(carried)
        scale, shift = self._path.affine(self.tau)
        reached = self.target if self.choice else Prior.from_log(self.prior.log + shift)
        return Affine(scale, shift, reached)

    def carried_before(self, after: Prior | None) -> Prior:
        """The training prior."""
        return self.prior

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


@dataclass(frozen=True, init=False, eq=False)
class WeightNormalization(AffineAdjuster):
    """Divides logits by ν^τ. Afterwards the scores carry no known prior.

    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> WeightNormalization.by_prior([90, 10])(scores).logits.tolist()
    [[2.222, 10.000]]
    """

    nu: Floats  # one positive number a class
    tau: float  # 0 changes nothing
    choice: TauChoice | None  # how τ was chosen, if it was fitted

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
        """The normalisation with the τ that suits validation scores best, as `LogitAdjustment.fit`.

        ν is `by_norm(weight).nu` or `by_prior(prior).nu`; the target only says what is counted.

        >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
        >>> validation = Scores(logits, labels=[0, 0, 0, 1, 1])
        >>> WeightNormalization.fit(validation, nu=[2.0, 1.0]).tau
        0.377
        """
        from longtail.posthoc.tau.choice import choose_tau

        validation, divide = check_validation(scores, "the tau of weight normalisation"), cls(nu)
        divide._check_classes(scores.num_classes)
        goal = target_prior(target, scores.num_classes, "the scores have")
        train = scores.carried if scores.counts is None else Prior.of(scores.counts, zeros="keep")
        choice = choose_tau(divide._path, validation, goal, criterion, train, weights)
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


def _required(carried: Prior | None) -> Prior:
    if carried is None:
        raise UnknownPriorError("these scores carry no known prior")
    return carried
