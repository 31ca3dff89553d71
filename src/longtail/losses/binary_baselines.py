r"""Losses on yes/no labels to compare with: focal, class-balanced, asymmetric.

With x = z for no and −z for yes, and p = σ(z):

    focal            σ(x)^γ · (−log σ(−x)), yes times 2α and no times 2(1 − α)
    class-balanced   the same without α, or with γ = 0, times (1 − β) / (1 − β^n) of yes or of no,
                     which are scaled to sum to two
    asymmetric       yes: (1 − p)^γ⁺ · (−log p),     no: q^γ⁻ · (−log(1 − q)), q = max(p − m, 0)

Carries: None, since what a label counts depends on its logit; where all γ and m are 0 the weights
are a change of odds, and these are what it carries. Lin et al., ICCV 2017; Cui et al., CVPR 2019;
Ridnik et al., ICCV 2021.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.class_weights import class_balanced_weights
from longtail.core.label_odds import LabelOdds, LabelOddsLike
from longtail.core.numbers import check_number
from longtail.losses.binary import BinaryLoss, BinaryOptions, yes_to_no
from longtail.ranges import FractionBelowOne, NonNegative


class BinaryFocal(BinaryLoss):
    """The focal loss of each label: what a model is sure of counts less, by γ.

    `alpha` in (0, 1) is what positives weigh beside negatives; ½ weighs them alike.
    """

    def __init__(
        self,
        train: LabelOddsLike,
        gamma: NonNegative = 2.0,
        alpha: float = 0.5,
        **options: Unpack[BinaryOptions],
    ) -> None:
        odds = LabelOdds.of(train)
        share = check_number(alpha, "alpha", least=0, most=1)
        if share in (0.0, 1.0):
            raise ValueError(f"alpha must lie between 0 and 1, got {alpha}: nothing would count")
        both = np.outer([2 * share, 2 - 2 * share], np.ones(odds.num_labels))
        carried = odds.reweighted(yes_to_no(both)) if not gamma else None
        super().__init__(odds, carried, both, **options)
        self.gamma = check_number(gamma, "gamma", least=0)

    def both(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of yes and that of no for every logit, without weights."""
        return _faded(-logits, self.gamma), _faded(logits, self.gamma)


class ClassBalancedBinary(BinaryLoss):
    """Binary cross-entropy, or with γ the focal loss, with class-balanced weights of yes and no.

    The weights come from counts: `LabelOdds.from_counts` or `from_labels`. Without γ they are a
    change of odds, which is declared.

    >>> ClassBalancedBinary(LabelOdds.from_counts([10, 500], 1000)).carried
    LabelOdds([0.488, 0.5])
    """

    def __init__(
        self,
        train: LabelOddsLike,
        beta: FractionBelowOne = 0.9999,
        gamma: NonNegative | None = None,
        **options: Unpack[BinaryOptions],
    ) -> None:
        odds = LabelOdds.of(train)
        if odds.positives is None or odds.total is None:
            raise ValueError(
                "class-balanced weights need counts, but the train odds were not made from any; "
                "give LabelOdds.from_counts(positives, total) or LabelOdds.from_labels(labels)"
            )
        pairs = np.stack([odds.positives, odds.total - odds.positives], axis=1)
        halves = 0.0 if pairs.all() else 0.5  # of zeros="smooth"
        both = np.array([class_balanced_weights(pair + halves, beta) for pair in pairs]).T
        carried = None if gamma else odds.reweighted(yes_to_no(both))
        super().__init__(odds, carried, both, **options)
        self.gamma = 0.0 if gamma is None else check_number(gamma, "gamma", least=0)

    def both(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of yes and that of no for every logit, without weights."""
        return _faded(-logits, self.gamma), _faded(logits, self.gamma)


class Asymmetric(BinaryLoss):
    """The asymmetric loss: easy negatives count less than easy positives, or not at all.

    `gamma_pos` and `gamma_neg` fade positives and negatives, and negatives of a probability below
    `margin` do not count.
    """

    def __init__(
        self,
        train: LabelOddsLike,
        gamma_pos: NonNegative = 0.0,
        gamma_neg: NonNegative = 4.0,
        margin: FractionBelowOne = 0.05,
        **options: Unpack[BinaryOptions],
    ) -> None:
        odds = LabelOdds.of(train)
        plain = not (gamma_pos or gamma_neg or margin)
        super().__init__(odds, odds if plain else None, **options)
        self.gamma_pos = check_number(gamma_pos, "gamma_pos", least=0)
        self.gamma_neg = check_number(gamma_neg, "gamma_neg", least=0)
        self.margin = check_number(margin, "margin", least=0, below=1)

    def both(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of yes and that of no for every logit, without weights."""
        positive = _faded(-logits, self.gamma_pos)
        if not self.margin:
            return positive, _faded(logits, self.gamma_neg)
        probs = logits.sigmoid()
        counts = probs > self.margin
        # Where a negative does not count, its power must not be looked at: its slope may be none.
        beyond = (probs - self.margin).where(counts, 0.5)
        return positive, (-(beyond**self.gamma_neg) * torch.log1p(-beyond)).where(counts, 0.0)


def _faded(wrong_way: Tensor, gamma: float) -> Tensor:
    """σ(x)^γ · log(1 + exp x), where x is the logit with the sign that makes it wrong."""
    # Not F.softplus, which is linear above 20 and off by 2e-9 there.
    losses = -F.logsigmoid(-wrong_way)
    return losses if not gamma else (gamma * F.logsigmoid(wrong_way)).exp() * losses
