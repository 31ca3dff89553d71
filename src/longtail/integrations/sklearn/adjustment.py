r"""What is fitted once the classifier inside is: what its scores carry, a calibrator, τ.

In this order, each on out-of-fold scores, which are made only if one of them asks for it. A
temperature comes before the move: after it, it would shrink the prior along with the evidence. It
changes no decision at the best τ, which grows and shrinks with it, but makes probabilities right.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from longtail.core import Prior, Scores, measure_carried
from longtail.core.prior import check_same_classes, full_prior
from longtail.integrations.sklearn.carried import carried_by, may_ignore_weights
from longtail.integrations.sklearn.folds import out_of_fold, splits_of
from longtail.integrations.sklearn.inner import gives_probs
from longtail.integrations.sklearn.options import Calibration, Carried, Options
from longtail.integrations.sklearn.training_set import TrainingLabels, TrainingSet
from longtail.posthoc import BiasCorrectedTemperature, LogitAdjustment, Temperature

AnyCalibrator: TypeAlias = Temperature | BiasCorrectedTemperature


class Adjustment(NamedTuple):
    """What was fitted.

    Attributes:
        carried: The prior that the scores of the classifier inside carry.
        calibrator: What is done to them before the move; None for nothing.
        move: The move; with τ but without its target, if that is estimated later.
        scores: The out-of-fold scores, calibrated but not moved; None if there was no use for any.
    """

    carried: Prior
    calibrator: AnyCalibrator | None
    move: LogitAdjustment
    scores: Scores | None


def fit_adjustment(
    model: Any,
    estimator: Any,
    data: TrainingSet,
    target: Prior | None,
    options: Options,
    seed: int | None,
) -> Adjustment:
    """Fit what the options ask for.

    Args:
        model: The estimator, fitted on all samples.
        estimator: To be fitted on the folds.
        data: The training set.
        target: The prior to move to; None if it is estimated later.
        options: Those of the classifier.
        seed: Of the shuffle into folds.
    """
    carried = _declared(options.carried, model, data.labels)
    at_target = target is not None and carried is not None and target.is_close(carried)
    choose = options.tau == "auto" and target is not None and not at_target
    calibration = _calibration(options.calibration, model, target, choose)
    tau = 1.0 if options.tau == "auto" else float(options.tau)
    splits = []
    if carried is None or calibration is not None or target is None or choose:
        splits = splits_of(options.cv, data, seed)
    if not splits:  # nothing to fit, or nothing to fit it on
        if carried is None:
            raise ValueError('carried="measure" needs classes of two samples or more, got none')
        return Adjustment(carried, None, LogitAdjustment(carried, tau, target), None)
    # Decision values are no logits yet, and of a prior given or measured no fold has its own.
    by_labels = _is_by_labels(options.carried) and carried is not None
    move_to = carried if by_labels and gives_probs(model) else None
    unseen = out_of_fold(estimator, data, splits, move_to, options.n_jobs)
    labels = data.labels.codes[unseen.positions]
    weights = None if data.labels.weights is None else data.labels.weights[unseen.positions]
    if carried is None:
        carried = measure_carried(unseen.logits, labels)
    scores = Scores(  # of decision values nobody minds what they sum to
        unseen.logits,
        labels,
        carried,
        data.labels.counts,
        split="validation",
        _are_logits=True,
    )
    calibrator: AnyCalibrator | None = None
    if calibration == "temperature":
        calibrator = Temperature.fit(scores, weights=weights)
    elif calibration == "bias_corrected":
        calibrator = BiasCorrectedTemperature.fit(scores)
    scores = scores if calibrator is None else calibrator(scores)
    if choose:
        move = LogitAdjustment.fit(scores, carried, target, options.criterion, weights)
    else:
        move = LogitAdjustment(carried, tau, target)
    return Adjustment(carried, calibrator, move, scores)


def _declared(carried: Carried, model: Any, labels: TrainingLabels) -> Prior | None:
    """What the scores of the fitted estimator carry; None if that is to be measured."""
    if _is_by_labels(carried):
        declared = carried_by(model, labels)  # raises if nothing is known
        return None if may_ignore_weights(model, labels) else declared
    if isinstance(carried, str):
        return None
    prior = full_prior(carried, "carried")
    check_same_classes(len(labels.classes), prior, "the training labels have", "carried")
    return prior


def _is_by_labels(carried: Carried) -> bool:
    """Whether the estimator itself and its labels tell what it carries."""
    return isinstance(carried, str) and carried == "train"


def _calibration(
    calibration: Calibration, model: Any, target: Prior | None, choose: bool
) -> Calibration:
    """The calibration meant by "auto"; the others mean themselves."""
    if calibration != "auto":
        return calibration
    if target is None or not gives_probs(model):
        return "bias_corrected"  # estimating a prior asks for it; decision values are no logits
    return "temperature" if choose else None  # free, where out-of-fold scores are made anyway
