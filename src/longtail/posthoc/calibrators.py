r"""Calibrators: scale and bias without a change of prior, fitted on validation samples.

    Temperature                f_y / T              Guo et al., 2017, §4.2
    BiasCorrectedTemperature   f_y / T + b_y        Alexandari et al., 2020
    VectorScaling              s_y · f_y + b_y      Guo et al., 2017, §4.2

One number makes a model as sure as it should be, and changes no prediction under the carried prior.
A bias mends what a temperature cannot, such as a model that favours some classes throughout; it
is what estimating an unknown target prior asks of a model (`shift`). 2C numbers are many for a
tail, so what is believed of them beforehand matters (`calibration_fit`): T near 1, biases near
zero, and the scales of a VectorScaling near one that all classes share. Unlike the other two that
one sees what is added to a whole row of logits, so it holds for logits as the model gives them, not
for their log-softmax.

Carries: what the scores carried. If that was not known, b takes up the difference, and the result
carries the prior of the validation samples. So calibrate first, and move to another prior after:
the other way round a temperature would shrink the prior along with the evidence.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from longtail.core import Prior, PriorLike, Scores, UnknownPriorError
from longtail.core.arrays import ArrayLike, Floats, as_numpy
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import full_prior
from longtail.posthoc.adjuster import Affine, AffineAdjuster

_LESS_SURE = "1 changes nothing, more makes the model less sure"
_FREE = "a large one leaves the fit to the data alone"


class Calibrator(AffineAdjuster):
    """Makes scores as sure as they should be, under the prior that they carry.

    One that was fitted remembers what the scores carried and refuses others. Made by hand it
    remembers nothing and leaves what is carried as it is. Whether it was applied before it sees
    only if it was fitted on scores of unknown prior: else the scores carry the same before and
    after, so apply it once.
    """

    source: Prior | None  # what the scores it was fitted on carried; None if unknown, or by hand
    carried: Prior | None  # what the result carries; None if made by hand

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """Scale and bias; a ValueError for scores unlike those it was fitted on."""
        reached = self._carried_after(carried)
        return Affine(*self._scale_and_shift(num_classes), reached)

    def carried_before(self, after: Prior | None) -> Prior | None:
        """What it was fitted on; by hand, what is carried afterwards."""
        return after if self.carried is None else self.source

    @abstractmethod
    def _scale_and_shift(self, num_classes: int) -> tuple[Floats, Floats]: ...

    def _keep(
        self, source: PriorLike | None, carried: PriorLike | None = None, **values: object
    ) -> None:
        """Set the values and both priors; one that starts from a known prior carries it on."""
        start = None if source is None else full_prior(source, "source")
        reached = start if carried is None else full_prior(carried, "carried")
        vars(self).update(values, source=start, carried=reached)

    def _carried_after(self, carried: Prior | None) -> Prior | None:
        if self.carried is None:
            return carried
        fitted_on = f"this {type(self).__name__} was fitted on scores that carry"
        if carried is None and self.source is not None:
            raise UnknownPriorError(f"{fitted_on} {self.source!r}, but these carry no known prior")
        if carried is not None and self.source is None:
            raise ValueError(
                f"{fitted_on} no known prior, but these carry {carried!r}: they were calibrated "
                "already, or another model made them; apply it once, to scores as its model gives "
                "them"
            )
        if carried is not None and self.source is not None and not carried.is_close(self.source):
            raise ValueError(
                f"{fitted_on} {self.source!r}, but these carry {carried!r}: calibrate first and "
                f"move to another prior after that, or fit it on scores that carry {carried!r}"
            )
        return self.carried


@dataclass(frozen=True, init=False, eq=False)
class Temperature(Calibrator):
    """Divides the logits by T: above 1 for a model that is too sure of itself.

    >>> sure = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]] * 20    # right in 3 of 4, says 98 %
    >>> scores = Scores(sure, labels=[0, 0, 1, 1] * 20, carried=[1, 1])
    >>> fitted = Temperature.fit(scores)
    >>> fitted.temperature
    3.419
    >>> fitted(scores).probs()[0].tolist()
    [0.763, 0.237]
    """

    temperature: float  # T, above zero
    source: Prior | None

    def __init__(self, temperature: float = 1.0, source: PriorLike | None = None) -> None:
        self._keep(source, temperature=_positive(temperature, "temperature", _LESS_SURE))

    @classmethod
    def fit(
        cls, scores: Scores, spread: float = 1.0, weights: ArrayLike | None = None
    ) -> Temperature:
        """The temperature that suits labelled validation scores of known carried prior best.

        `spread` is how far log T is expected from zero, as a standard deviation; `weights` as how
        many samples each counts, one by default.
        """
        from longtail.posthoc.calibration_fit import fit_temperature

        return cls(
            fit_temperature(scores, _positive(spread, "spread", _FREE), weights), scores.carried
        )

    def _scale_and_shift(self, num_classes: int) -> tuple[Floats, Floats]:
        return np.full(num_classes, 1 / self.temperature), np.zeros(num_classes)


@dataclass(frozen=True, init=False, eq=False)
class BiasCorrectedTemperature(Calibrator):
    """Divides the logits by T and adds a bias to each class.

    >>> scores = Scores([[0.0, 0.0]] * 80, labels=[0, 0, 0, 1] * 20, carried=[50, 50])
    >>> BiasCorrectedTemperature.fit(scores).bias.tolist()      # 60 to 20 is these samples' prior
    [0.0, 0.0]
    >>> unknown = Scores(scores.logits, scores.labels)
    >>> fitted = BiasCorrectedTemperature.fit(unknown)
    >>> fitted(unknown).carried, fitted(unknown).probs()[0].tolist()
    (Prior([0.75, 0.25]), [0.744, 0.256])
    """

    temperature: float  # T, above zero
    bias: Floats | None  # b, one number a class; None for zeros
    source: Prior | None
    carried: Prior | None

    def __init__(
        self,
        temperature: float = 1.0,
        bias: ArrayLike | None = None,
        source: PriorLike | None = None,
        carried: PriorLike | None = None,
    ) -> None:
        divisor = _positive(temperature, "temperature", _LESS_SURE)
        self._keep(source, carried, temperature=divisor, bias=_per_class(bias, "bias", "any"))

    @classmethod
    def fit(cls, scores: Scores, spread: float = 1.0) -> BiasCorrectedTemperature:
        """The temperature and biases that suit labelled validation scores best.

        If it is not known what they carry, every class must occur. `spread` is how far each bias is
        expected from zero, as a standard deviation; of log T, for which all samples speak, 1 is
        expected, or the same if that is more.
        """
        from longtail.posthoc.calibration_fit import fit_scales

        fit = fit_scales(
            scores, "a bias-corrected temperature", bias=_positive(spread, "spread", _FREE)
        )
        return cls(fit.temperature, fit.bias, fit.source, fit.carried)

    def _scale_and_shift(self, num_classes: int) -> tuple[Floats, Floats]:
        scale = np.full(num_classes, 1 / self.temperature)
        return scale, _filled(self.bias, "bias", np.zeros(num_classes))


@dataclass(frozen=True, init=False, eq=False)
class VectorScaling(Calibrator):
    """Scales the logit of each class and adds a bias to it.

    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> VectorScaling(scale=[0.5, 1.0], bias=[0.0, 0.3])(scores).logits.tolist()
    [[1.0, 1.3]]
    """

    scale: Floats | None  # s, one positive number a class; None for ones
    bias: Floats | None  # b, one number a class; None for zeros
    source: Prior | None
    carried: Prior | None

    def __init__(
        self,
        scale: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        source: PriorLike | None = None,
        carried: PriorLike | None = None,
    ) -> None:
        scales = _per_class(scale, "scale", "positive")
        self._keep(source, carried, scale=scales, bias=_per_class(bias, "bias", "any"))

    @classmethod
    def fit(cls, scores: Scores, spread: float = 1.0, scale_spread: float = 0.1) -> VectorScaling:
        """The scales and biases that suit validation scores best: `BiasCorrectedTemperature.fit`.

        The log-scale that all classes share is expected as log T is there, and that of each class
        within `scale_spread` of it.
        """
        from longtail.posthoc.calibration_fit import fit_scales

        width = _positive(spread, "spread", _FREE)
        own_width = _positive(scale_spread, "scale_spread", _FREE)
        fit = fit_scales(scores, "vector scaling", bias=width, scale=own_width)
        return cls(fit.scale / fit.temperature, fit.bias, fit.source, fit.carried)

    def _scale_and_shift(self, num_classes: int) -> tuple[Floats, Floats]:
        scale = _filled(self.scale, "scale", np.ones(num_classes))
        return scale, _filled(self.bias, "bias", np.zeros(num_classes))


def _positive(value: float, name: str, hint: str) -> float:
    if not check_number(value, name) > 0:
        raise ValueError(f"{name} must be above zero, got {value}; {hint}")
    return float(value)


def _per_class(
    values: ArrayLike | None, name: str, least: Literal["positive", "any"]
) -> Floats | None:
    return None if values is None else check_per_class(values, as_numpy(values).size, name, least)


def _filled(values: Floats | None, name: str, default: Floats) -> Floats:
    """The numbers, or the default; a ValueError if they are not as many."""
    if values is None:
        return default
    if len(values) != len(default):
        raise ValueError(f"{name} has {len(values)} classes, the scores have {len(default)}")
    return values
