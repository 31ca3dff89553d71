r"""Marginal matching: a move by what unlabelled samples of a known prior say that logits carry.

    f_y + b_y    with   mean_i softmax(f_i + b) = t,    the prior t that the samples follow

What a model was trained for is not quite what it carries: it favours some classes for their
samples, not their number. Unlabelled samples show it, as far as their number tells it from chance
(`core.carried`): with few of them, b is the plain move from the carried prior to t.

Carries: t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike, Floats, as_numpy
from longtail.core.numbers import check_per_class
from longtail.core.prior import full_prior
from longtail.core.retarget import prior_offset
from longtail.core.score_checks import check_softmax
from longtail.posthoc.calibrators import Calibrator


@dataclass(frozen=True, init=False, eq=False)
class MarginalMatching(Calibrator):
    """Moves scores to the prior that unlabelled samples follow, by what these say is carried.

    >>> logits = [[2.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]] * 500      # of 50 : 50 samples
    >>> fitted = MarginalMatching.fit(Scores(logits, carried=[1, 1]), prior=[50, 50])
    >>> fitted.measured, fitted.bias.tolist(), fitted.spread.tolist()
    (Prior([0.622, 0.378]), [-0.248, 0.248], [0.011, 0.017])
    """

    bias: Floats  # b, one number a class
    carried: Prior  # t, what the result carries
    source: Prior | None  # what the scores it was fitted on were said to carry
    spread: Floats | None  # standard errors of the logarithms of `measured`; None if made by hand

    def __init__(
        self,
        bias: ArrayLike,
        carried: PriorLike,
        source: PriorLike | None = None,
        spread: ArrayLike | None = None,
    ) -> None:
        goal = full_prior(carried, "known")
        shift = check_per_class(bias, goal.num_classes, "bias", "any")
        if spread is not None:
            spread = check_per_class(spread, goal.num_classes, "spread", "zero")
        self._keep(source, goal, bias=shift, spread=spread)

    @classmethod
    def fit(cls, scores: Scores, prior: PriorLike) -> MarginalMatching:
        """The move that unlabelled scores of samples that follow the prior ask for.

        Their labels are not looked at, so they may be of the test set. With few of them it is the
        move from what the scores carry to the prior; where that is unknown, from the prior itself.
        """
        from longtail.core.carried import matched_offsets

        check_softmax(scores, "marginal matching")
        goal, logits = full_prior(prior, "known"), as_numpy(scores.logits)
        move = np.zeros(goal.num_classes)
        if scores.carried is not None:
            move = prior_offset(scores.carried, goal)
        matched = matched_offsets(logits + move, goal)
        measured = Prior.from_log(goal.log - move - matched.offset)
        spread = matched.deviations(measured.probs)
        return cls(move + matched.offset, goal, scores.carried, spread)

    @property
    def measured(self) -> Prior:
        """What the logits carry by the samples, whatever they were said to."""
        return Prior.from_log(self.carried.log - self.bias)

    @property
    def interval(self) -> tuple[Floats, Floats] | None:
        """The ends of the 95 % intervals of that, one a class; None if made by hand."""
        if self.spread is None:
            return None
        from longtail.stats import NORMAL

        probs, factor = self.measured.probs, np.exp(NORMAL * self.spread)
        return probs / factor, np.minimum(probs * factor, 1.0)

    @property
    def beyond(self) -> float:
        """How far the logits are off from what they were said to carry: the root mean square."""
        start = self.carried if self.source is None else self.source
        return float((self.bias - prior_offset(start, self.carried)).std())

    def _scale_and_shift(self, num_classes: int) -> tuple[Floats, Floats]:
        if len(self.bias) != num_classes:
            raise ValueError(f"bias has {len(self.bias)} classes, the scores have {num_classes}")
        return np.ones(num_classes), self.bias
