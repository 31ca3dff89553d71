r"""Bias-corrected temperature scaling (Alexandari et al., 2020): a temperature and a bias a class.

    f_y / T + b_y

The bias mends what a temperature cannot, such as a model that favours some classes throughout. It
is what estimating an unknown target prior asks of a model (`shift`). Both are fitted under the
held-out samples' own prior (`calibration_fit`).

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
from longtail.posthoc.temperature import check_temperature


@dataclass(frozen=True, init=False, eq=False)
class BiasCorrectedTemperature(Calibrator):
    """Divides the logits by T and adds a bias to each class.

    Attributes:
        temperature: T, above zero.
        bias: b, one number a class; None for zeros.
        source: What the scores it was fitted on carried; None if unknown, or made by hand.
        carried: What the result carries; None if made by hand, which leaves what is carried alone.

    >>> scores = Scores([[0.0, 0.0]] * 80, labels=[0, 0, 0, 1] * 20, carried=[50, 50])
    >>> BiasCorrectedTemperature.fit(scores).bias.tolist()      # 60 to 20 is these samples' prior
    [0.0, 0.0]
    >>> unknown = Scores(scores.logits, scores.labels)
    >>> fitted = BiasCorrectedTemperature.fit(unknown)
    >>> fitted(unknown).carried, fitted(unknown).probs()[0].tolist()
    (Prior([0.75, 0.25]), [0.744, 0.256])
    """

    temperature: float
    bias: Tensor | None
    source: Prior | None
    carried: Prior | None

    def __init__(
        self,
        temperature: float = 1.0,
        bias: ArrayLike | None = None,
        source: PriorLike | None = None,
        carried: PriorLike | None = None,
    ) -> None:
        vars(self).update(
            temperature=check_temperature(temperature),
            bias=one_a_class(bias, "bias", "any"),
            **kept_priors(source, carried),
        )

    @classmethod
    def fit(cls, scores: Scores, spread: float = 1.0) -> BiasCorrectedTemperature:
        """The temperature and biases that suit held-out scores best.

        Args:
            scores: Labelled, and not of the test set. If it is not known what they carry, every
                class must occur among the labels.
            spread: How far each bias is expected from zero, as a standard deviation. Of log T, for
                which all samples speak, 1 is expected, or the same if that is more.
        """
        width = check_spread(spread)
        held = held_out(scores, "a bias-corrected temperature")
        source, carried = fitted_priors(held)
        found = fit_calibration(
            held, "the bias-corrected temperature", temperature=max(1.0, width), bias=width
        )
        return cls(found.temperature, found.bias, source, carried)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The division and the biases; a ValueError for scores unlike those it was fitted on."""
        reached = self.carried_after(carried)
        scale = torch.full((num_classes,), 1 / self.temperature, dtype=torch.float64, device="cpu")
        return Affine(scale, filled(self.bias, "bias", torch.zeros_like(scale)), reached)
