"""estimate_prior: the label prior of unlabelled samples, from what a model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import Array, Floats, as_numpy, to_kind
from longtail.core.draws import Draws
from longtail.core.numbers import check_choice, check_number, check_whole
from longtail.core.threads import one_blas_thread
from longtail.posthoc import BiasCorrectedTemperature, Calibrator
from longtail.posthoc.validation import Validation, check_validation, effective_samples
from longtail.shift.confusion import by_confusion
from longtail.shift.em import RawEstimate, plain_em
from longtail.shift.shrinkage import shrunken_em
from longtail.stats import NORMAL

Method: TypeAlias = Literal["em", "bbse", "rlls"]


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """What `estimate_prior` found. Use it as `scores.under(estimate.prior)`."""

    prior: Prior  # in which no class has probability zero
    low: Array | None  # the lower ends of 95 % intervals, one a class; None if there are none
    high: Array | None  # the upper ends
    method: Method
    iterations: int
    converged: bool
    calibration: Calibrator | None  # fitted on the validation scores and applied before, if any
    slope: float | None  # of the trend shrunk towards, if any: 1 is as in training, 0 uniform
    trust: float | None  # how far classes were let off the trend: 0 not at all, 1 as far as EM's
    effective_samples: float | None  # that validation is worth where labels follow the estimate


@one_blas_thread()
def estimate_prior(
    scores: Scores,
    method: Method = "em",
    validation: Scores | None = None,
    *,
    calibrate: bool = True,
    shrink: bool = True,
    soft: bool = False,
    pseudo_count: float = 1.0,
    resamples: int = 50,
    seed: int = 0,
) -> PriorEstimate:
    """The label prior that samples follow, whatever prior their scores carry.

    "em" maximises the likelihood with a Dirichlet prior. With validation scores, which is the way
    to use it, the model is calibrated first, and single classes leave a trend over the training
    counts only as far as the validation samples vouch for it (`shift.shrinkage`). "bbse" and "rlls"
    solve for the prior by a confusion matrix (`shift.confusion`): they need validation scores and
    many samples of every class, but no model whose probabilities are right.

    Args:
        scores: Of the samples whose prior is wanted; their labels are not looked at. The trend is
            over their counts, else those of the validation scores, else those of its labels.
        method: "em", "bbse" or "rlls".
        validation: Labelled scores of the same model for samples that it was not trained on;
            cross-fitted ones of the training set serve well. They may carry another prior, and
            their labels follow yet another.
        calibrate: Fit a bias-corrected temperature on the validation scores, and apply it to both.
        shrink: Towards the trend, for "em" with validation scores. Without it is plain EM.
        soft: For "bbse" and "rlls": a confusion matrix of probabilities instead of decisions.
        pseudo_count: How many samples to add for each class: the Dirichlet prior of "em".
        resamples: How often samples are drawn again for the intervals; 0 for none. A few samples
            alone, without validation and with a pseudo_count of 0, have none either.
        seed: Of the drawing.

    >>> told_apart = [[3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]] * 50
    >>> estimate = estimate_prior(Scores(told_apart, carried=[1, 1]))
    >>> estimate.prior
    Prior([0.227, 0.773])
    >>> estimate.low.tolist(), estimate.high.tolist()
    ([0.17, 0.71], [0.30, 0.84])
    """
    _check(scores, method, validation, pseudo_count, resamples)
    samples, checked, calibration = _under_uniform(scores), None, None
    if validation is not None:
        labelled = _checked(validation, scores.num_classes)
        if calibrate:
            calibration = BiasCorrectedTemperature.fit(labelled)
            samples, labelled = calibration(samples), calibration(labelled)
        checked = check_validation(labelled, "estimate_prior")
    logits, options = as_numpy(samples.logits), (pseudo_count, resamples, Draws(seed))
    if checked is None or (method == "em" and not shrink):
        estimate = plain_em(logits, *options)
    elif method == "em":
        estimate = shrunken_em(logits, checked, _log_counts(scores, validation, checked), *options)
    else:
        estimate = by_confusion(logits, checked, method, soft, *options)
    ends, settled = _interval(estimate, scores), (estimate.iterations, estimate.converged)
    shrunk = estimate.slope, estimate.trust
    worth = None if checked is None else effective_samples(checked.weights_to(estimate.prior))
    return PriorEstimate(estimate.prior, *ends, method, *settled, calibration, *shrunk, worth)


def _check(
    scores: Scores, method: str, validation: Scores | None, pseudo_count: float, resamples: int
) -> None:
    if not len(scores):
        raise ValueError("estimate_prior needs at least one sample, got none")
    check_choice(method, Method, "method")
    if method != "em" and validation is None:
        raise ValueError(
            f'method="{method}" compares predictions with those for labelled samples: give '
            'validation scores, for example cross-fitted ones of the training set, or use "em"'
        )
    check_number(pseudo_count, "pseudo_count", least=0)
    if check_whole(resamples, "resamples") < 0 or resamples == 1:
        raise ValueError(
            f"resamples must be 0, for no intervals, or a whole number above 1, got {resamples}"
        )


def _under_uniform(scores: Scores) -> Scores:
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
    return _under_uniform(validation)


def _log_counts(scores: Scores, validation: Scores | None, checked: Validation) -> Floats:
    """Of the training counts, or of what is nearest to them; one half is added to zeros."""
    given_counts = (scores.counts, None if validation is None else validation.counts)
    own = np.bincount(checked.labels, minlength=scores.num_classes)
    counts = next((counts for counts in given_counts if counts is not None), own)
    return Prior.of(counts, zeros="smooth").log


def _interval(estimate: RawEstimate, scores: Scores) -> tuple[Array | None, Array | None]:
    """Normal on the logarithmic scale, which keeps it above 0."""
    if estimate.spread is None:
        return None, None
    factor, probs = np.exp(NORMAL * estimate.spread), estimate.prior.probs
    ends = probs / factor, np.minimum(probs * factor, 1.0)
    low, high = (to_kind(end, scores.logits) for end in ends)
    return low, high
