"""estimate_prior: the label prior of unlabelled samples, from what a model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import Array, ArrayLike, Floats, Numbers, as_numpy, to_kind
from longtail.core.draws import Draws
from longtail.core.neighbours import nearest
from longtail.core.threads import one_blas_thread
from longtail.posthoc import Calibrator
from longtail.posthoc.validation import effective_samples
from longtail.shift import em
from longtail.shift.asked import Method, check_asked, check_used, checked_features
from longtail.shift.confusion import by_confusion
from longtail.shift.neighbours import best_share
from longtail.shift.posterior import posteriors, trend_along
from longtail.shift.prepared import Prepared, prepare, under_uniform
from longtail.shift.simulated import reliance, simulated_shifts
from longtail.stats import NORMAL

_RESAMPLES = 50


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """What `estimate_prior` found.

    `scores` are the samples it was made of, calibrated and smoothed as they were for it, and moved
    to it. Others of the same model are moved to it by `others.under(estimate.prior)`.
    """

    prior: Prior  # in which no class has probability zero
    low: Array | None  # the lower ends of 95 % intervals, one a class; None if there are none
    high: Array | None  # the upper ends
    method: Method
    iterations: int
    converged: bool
    scores: Scores  # of the samples, under the prior
    calibration: Calibrator | None = None  # fitted on the validation scores, if any
    slope: float | None = None  # of the trend around which it lies: 1 is as in training, 0 uniform
    strength: float | None = None  # how many samples that trend counts for, beside these
    evidence: float | None = None  # what a sample counts: less than 1 where the model errs
    neighbours: float | None = None  # their share in a sample, if features were given
    effective_samples: float | None = None  # that validation is worth where labels follow the prior


@one_blas_thread()
def estimate_prior(
    scores: Scores,
    method: Method = "em",
    validation: Scores | None = None,
    *,
    features: ArrayLike | None = None,
    validation_features: ArrayLike | None = None,
    calibrate: bool = True,
    shrink: bool = True,
    soft: bool = False,
    pseudo_count: float | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> PriorEstimate:
    """The label prior that samples follow, whatever prior their scores carry.

    "em" maximises the likelihood with a Dirichlet prior. With validation scores, which is the way
    to use it, the model is calibrated first, and the prior lies as near to a trend over the
    training counts as the samples say (`shift.posterior`) and shifts that are simulated with the
    validation samples vouch for (`shift.simulated`). "bbse" and "rlls" solve for the prior by a
    confusion matrix (`shift.confusion`): they need validation scores and many samples of every
    class, but no model whose probabilities are right.

    Args:
        scores: Of the samples whose prior is wanted; their labels are not looked at. The trend is
            over their counts, else those of the validation scores, else those of its labels.
        method: "em", "bbse" or "rlls".
        validation: Labelled scores of the same model for samples that it was not trained on;
            cross-fitted ones of the training set serve well. They may carry another prior, and
            their labels follow yet another.
        features: Of the samples, one row each: what is said of a sample is smoothed over its
            nearest neighbours (`core.neighbours`), as far as that helps on simulated shifts. For
            "em" with validation scores. What a sample counts, and how wide intervals are, was still
            tried out on scores that are not smoothed.
        validation_features: Of the validation samples, from the same network.
        calibrate: Fit a bias-corrected temperature on the validation scores, if there are any, and
            apply it to both.
        shrink: Towards the trend, for "em" with validation scores. Without it is plain EM.
        soft: For "bbse" and "rlls": a confusion matrix of probabilities instead of decisions.
        pseudo_count: How many samples to add for each class, 1 if not given: the Dirichlet prior
            of plain EM, and what keeps "bbse" and "rlls" from ruling classes out. Where the
            strength of a trend is learned there is none to give.
        intervals: Whether to give them. A few samples alone, without validation and with a
            pseudo_count of 0, have none.
        seed: Of what is drawn for them, and of the simulated shifts.

    >>> told_apart = [[3.0, 0.0], [0.0, 3.0], [0.0, 3.0], [0.0, 3.0]] * 50
    >>> estimate = estimate_prior(Scores(told_apart, carried=[1, 1]))
    >>> estimate.prior
    Prior([0.227, 0.773])
    >>> estimate.low.tolist(), estimate.high.tolist()
    ([0.17, 0.71], [0.30, 0.84])
    """
    learned = method == "em" and validation is not None and shrink
    check_asked(scores, method, validation, pseudo_count, learned)
    check_used(method, validation is not None, calibrate, shrink, soft)
    checked = None if validation is None else prepare(validation, scores.num_classes, calibrate)
    if learned:
        assert checked is not None
        rows = checked_features(scores, validation, features, validation_features)
        return estimate_prepared(scores, checked, rows, intervals, seed)
    if features is not None or validation_features is not None:
        raise ValueError(
            'features are for method="em" with validation scores and shrink=True; leave them out'
        )
    samples = under_uniform(scores)
    if checked is not None and checked.calibration is not None:
        samples = checked.calibration(samples)
    more = 1.0 if pseudo_count is None else pseudo_count
    options = (more, _RESAMPLES if intervals else 0, Draws(seed))
    if checked is None or method == "em":
        raw = em.plain_em(as_numpy(samples.logits), *options)
    else:
        raw = by_confusion(as_numpy(samples.logits), checked.calibrated, method, soft, *options)
    return _told(scores, samples, method, raw, checked)


@one_blas_thread()
def estimate_prepared(
    scores: Scores,
    validation: Prepared,
    features: tuple[Numbers, Numbers] | None = None,
    intervals: bool = True,
    seed: int = 0,
) -> PriorEstimate:
    """A posteriori, near a trend; `features` are of the samples and of the validation samples.

    What the estimate relies on is found on the validation scores as they are: not smoothed, also
    where those of the samples are.
    """
    held_out, random, samples = validation.held_out, Draws(seed), under_uniform(scores)
    if validation.calibration is not None:
        samples = validation.calibration(samples)
    log_counts, share = _log_counts(scores, validation), None
    key = len(scores), seed, log_counts.tobytes()
    if features is not None or key not in validation.relied:
        shifts = simulated_shifts(held_out, len(scores), random)
    if features is not None:
        share = best_share(held_out, features[1], shifts)
        near = nearest(features[0])
        samples = samples._with(logits=near.smoothed(as_numpy(samples.logits), share))
    if key not in validation.relied:
        validation.relied[key] = reliance(held_out, log_counts, shifts)
    relied = validation.relied[key]
    likelihood = em.likelihoods(as_numpy(samples.logits))
    trend = trend_along(likelihood, np.ones(len(scores)), log_counts)
    once = np.ones((len(scores), 1))
    ((found,),) = posteriors(likelihood, once, trend.probs[:, None], (relied.eta,))
    spread = np.sqrt(found.variances + trend.variances) * relied.widening(found.strength)
    prior = em.full(np.exp(found.log_prior))
    raw = em.RawEstimate(prior, spread if intervals else None, found.iterations, found.converged)
    learned = _Learned(trend.slope, found.strength, relied.eta, share)
    return _told(scores, samples, "em", raw, validation, learned)


class _Learned(NamedTuple):
    """As in `PriorEstimate`."""

    slope: float | None = None
    strength: float | None = None
    evidence: float | None = None
    neighbours: float | None = None


_NOTHING_LEARNED = _Learned()


def _told(
    scores: Scores,
    samples: Scores,
    method: Method,
    raw: em.RawEstimate,
    validation: Prepared | None,
    learned: _Learned = _NOTHING_LEARNED,
) -> PriorEstimate:
    """`samples` are the scores under the uniform prior, in float64."""
    moved = as_numpy(samples.under(raw.prior).logits).astype(as_numpy(scores.logits).dtype)
    calibration, worth = None, None
    if validation is not None:
        calibration = validation.calibration
        worth = effective_samples(validation.calibrated.weights_to(raw.prior))
    return PriorEstimate(
        raw.prior,
        *_interval(raw, scores),
        method,
        raw.iterations,
        raw.converged,
        scores._with(logits=to_kind(moved, scores.logits), carried=raw.prior),
        calibration,
        *learned,
        worth,
    )


def _log_counts(scores: Scores, validation: Prepared) -> Floats:
    """Of the training counts, or of what is nearest to them; one half is added to zeros."""
    own = np.bincount(validation.calibrated.labels, minlength=scores.num_classes)
    given_counts = (scores.counts, validation.counts)
    counts = next((counts for counts in given_counts if counts is not None), own)
    return Prior.of(counts, zeros="smooth").log


def _interval(estimate: em.RawEstimate, scores: Scores) -> tuple[Array | None, Array | None]:
    """Normal on the logarithmic scale, which keeps it above 0."""
    if estimate.spread is None:
        return None, None
    # A factor of e¹⁰⁰ is any: few samples may leave all of it open.
    factor, probs = np.exp(np.minimum(NORMAL * estimate.spread, 100.0)), estimate.prior.probs
    ends = probs / factor, np.minimum(probs * factor, 1.0)
    low, high = (to_kind(end, scores.logits) for end in ends)
    return low, high
