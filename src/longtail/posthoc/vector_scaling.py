r"""Vector scaling (Guo et al., 2017, §4.2): a scale and a bias for every class.

    s_y · f_y + b_y

2C numbers are many for a tail, so what is believed of them beforehand matters (`calibration_fit`):
the log-scales are believed close to one that all classes share, a temperature, and the biases close
to zero. Unlike the other two it sees what is added to a whole row of logits, so it holds for logits
as the model gives them, not for their log-softmax.

Carries: what the scores carried. If that was not known, b takes up the difference, and the result
carries the prior of the held-out samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike
from longtail.posthoc.adjuster import Affine
from longtail.posthoc.calibration_fit import check_spread, fit_calibration
from longtail.posthoc.calibrator import (
    Calibrator,
    filled,
    fitted_priors,
    kept_priors,
    one_a_class,
)
from longtail.posthoc.held_out import held_out


@dataclass(frozen=True, init=False, eq=False)
class VectorScaling(Calibrator):
    """Scales the logit of each class and adds a bias to it.

    Attributes:
        scale: s, one positive number a class; None for ones.
        bias: b, one number a class; None for zeros.
        source: What the scores it was fitted on carried; None if unknown, or made by hand.
        carried: What the result carries; None if made by hand, which leaves what is carried alone.

    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> VectorScaling(scale=[0.5, 1.0], bias=[0.0, 0.3])(scores).logits.tolist()
    [[1.0, 1.3]]
    """

    scale: Tensor | None
    bias: Tensor | None
    source: Prior | None
    carried: Prior | None

    def __init__(
        self,
        scale: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        source: PriorLike | None = None,
        carried: PriorLike | None = None,
    ) -> None:
        vars(self).update(
            scale=one_a_class(scale, "scale", "positive"),
            bias=one_a_class(bias, "bias", "any"),
            **kept_priors(source, carried),
        )

    @classmethod
    def fit(cls, scores: Scores, spread: float = 1.0, scale_spread: float = 0.1) -> VectorScaling:
        """The scales and biases that suit held-out scores best.

        Args:
            scores: Labelled, and not of the test set. If it is not known what they carry, every
                class must occur among the labels.
            spread: How far each bias is expected from zero, as a standard deviation. Of the
                log-scale that all share 1 is expected, or the same if that is more.
            scale_spread: How far each log-scale is expected from the shared one.
        """
        width, own_width = check_spread(spread), check_spread(scale_spread, "scale_spread")
        held = held_out(scores, "vector scaling")
        source, carried = fitted_priors(held)
        found = fit_calibration(
            held, "vector scaling", temperature=max(1.0, width), bias=width, scale=own_width
        )
        return cls(found.scale / found.temperature, found.bias, source, carried)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """Scale and bias; a ValueError for scores unlike those it was fitted on."""
        reached = self.carried_after(carried)
        ones = torch.ones(num_classes, dtype=torch.float64, device="cpu")
        scale = filled(self.scale, "scale", ones)
        return Affine(scale, filled(self.bias, "bias", torch.zeros_like(ones)), reached)
