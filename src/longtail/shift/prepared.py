"""Validation scores made ready for estimates: checked, calibrated, under the uniform prior."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import Array, as_numpy
from longtail.data import stratified_folds
from longtail.posthoc import BiasCorrectedTemperature, Calibrator
from longtail.posthoc.validation import Validation, check_validation
from longtail.shift.simulated import Reliance

_FOLDS = 5  # of validation samples, each calibrated by what was fitted on the others


@dataclass(frozen=True, eq=False)
class Prepared:
    """Validation scores under the uniform prior, ready for any number of estimates."""

    calibration: Calibrator | None
    calibrated: Validation
    held_out: Validation  # each calibrated by what was fitted on the other folds
    counts: Array | None  # of the training set, if the scores say so
    # What is found out once for estimates from as many samples.
    relied: dict[tuple[int, int, bytes], Reliance] = field(default_factory=dict)


def prepare(validation: Scores, num_classes: int, calibrate: bool = True) -> Prepared:
    """Check the validation scores, and calibrate them."""
    labelled = _checked(validation, num_classes)
    calibration, calibrated, held_out = None, labelled, labelled
    if calibrate:
        calibration = BiasCorrectedTemperature.fit(labelled)
        calibrated, logits = calibration(labelled), np.empty_like(as_numpy(labelled.logits))
        folds = as_numpy(stratified_folds(as_numpy(labelled.labels), min(_FOLDS, len(labelled))))
        for fold in np.unique(folds):
            held = folds == fold
            other = BiasCorrectedTemperature.fit(labelled.take(~held))
            logits[held] = as_numpy(other(labelled.take(held)).logits)
        held_out = labelled._with(logits=logits)
    return Prepared(
        calibration,
        check_validation(calibrated, "estimate_prior"),
        check_validation(held_out, "estimate_prior"),
        validation.counts,
    )


def check_same_names(scores: Scores, validation: Scores) -> None:
    """Raise if both name their classes, and not alike."""
    if scores.classes and validation.classes and scores.classes != validation.classes:
        raise ValueError(
            "the classes of the scores and of the validation scores have other names, or are in "
            "another order; give scores of the same model"
        )


def under_uniform(scores: Scores) -> Scores:
    """In float64, so that it does not matter which prior they carried before."""
    exact = scores._with(
        logits=as_numpy(scores.logits).astype(np.float64),
        labels=None if scores.labels is None else as_numpy(scores.labels),
    )
    return exact.under(Prior.uniform(scores.num_classes))


def _checked(validation: Scores, num_classes: int) -> Scores:
    """The validation scores under the uniform prior, or a ValueError."""
    if validation.num_classes != num_classes:
        raise ValueError(
            f"the validation scores have {validation.num_classes} classes but the scores "
            f"{num_classes}; both must be of the same model"
        )
    samples = check_validation(validation, "estimate_prior")
    if samples.carried is None:
        raise UnknownPriorError("the validation scores carry no known prior")
    present, needed = int((samples.prior.probs > 0).sum()), min(3, num_classes)
    if present < needed:
        raise ValueError(
            f"the validation scores must have samples of {needed} classes or more to tell how far "
            f"a model of {num_classes} can be relied on, got {present}"
        )
    samples.check_possible()
    return under_uniform(validation)
