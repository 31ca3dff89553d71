r"""Temperature scaling (Guo et al., 2017, §4.2): one number makes a model as sure as it should be.

    f_y / T

No prediction under the carried prior changes. T is fitted under the held-out samples' own prior
(`calibration_fit`), and with a belief in T near 1 that a handful of samples outweigh.

Carries: what the scores carried. So calibrate first, and move to another prior after: the other
way round the temperature would shrink the prior along with the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.numbers import check_number
from longtail.core.prior import full_prior
from longtail.posthoc.adjuster import Affine
from longtail.posthoc.calibration_fit import check_spread, fit_calibration
from longtail.posthoc.calibrator import Calibrator
from longtail.posthoc.held_out import held_out


@dataclass(frozen=True, init=False, eq=False)
class Temperature(Calibrator):
    """Divides the logits by T: above 1 for a model that is too sure of itself.

    Attributes:
        temperature: T, above zero.
        source: What the scores it was fitted on carried; None if it was made by hand.

    >>> sure = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]] * 20    # right in 3 of 4, says 98 %
    >>> scores = Scores(sure, labels=[0, 0, 1, 1] * 20, carried=[1, 1])
    >>> fitted = Temperature.fit(scores)
    >>> fitted.temperature
    3.419
    >>> fitted(scores).probs()[0].tolist()
    [0.763, 0.237]
    """

    temperature: float
    source: Prior | None

    def __init__(self, temperature: float = 1.0, source: PriorLike | None = None) -> None:
        vars(self).update(
            temperature=check_temperature(temperature),
            source=None if source is None else full_prior(source, "source"),
        )

    @property
    def carried(self) -> Prior | None:  # type: ignore[override]
        """What the result carries."""
        return self.source

    @classmethod
    def fit(cls, scores: Scores, spread: float = 1.0) -> Temperature:
        """The temperature that suits held-out scores best.

        Args:
            scores: Labelled, not of the test set, and with a known carried prior.
            spread: How far log T is expected from zero, as a standard deviation.
        """
        width = check_spread(spread)
        held = held_out(scores, "a temperature")
        if held.carried is None:
            raise UnknownPriorError(
                "a temperature is fitted under the held-out prior, but these scores carry no known "
                "one (a bias-corrected temperature needs none)"
            )
        found = fit_calibration(held, "the temperature", temperature=width)
        return cls(found.temperature, held.carried)

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The division; a ValueError if the scores carry another prior than those fitted on."""
        reached = self.carried_after(carried)
        scale = torch.full((num_classes,), 1 / self.temperature, dtype=torch.float64, device="cpu")
        return Affine(scale, torch.zeros_like(scale), reached)


def check_temperature(temperature: float) -> float:
    """A positive number, or a ValueError."""
    if not check_number(temperature, "temperature") > 0:
        raise ValueError(
            f"temperature must be above zero, got {temperature}; 1 changes nothing, more makes the "
            "model less sure"
        )
    return float(temperature)
