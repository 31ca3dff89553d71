r"""What is fitted once the classifier inside is: what its scores carry, a calibrator, τ.

In this order, each on out-of-fold scores, which are made only if one of them asks for it. A
temperature comes before the move: after it, it would shrink the prior along with the evidence. It
changes no decision at the best τ, which grows and shrinks with it, but makes probabilities right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy.typing as npt

from longtail.core import Prior, PriorLike, Scores, measure_carried
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.integrations.sklearn.carried import carried_by, gives_probs, may_ignore_weights
from longtail.integrations.sklearn.folds import out_of_fold, splits_of
from longtail.integrations.sklearn.training_set import TrainingLabels, TrainingSet
from longtail.posthoc import BiasCorrectedTemperature, LogitAdjustment, Temperature
from longtail.posthoc.tau import Criterion

Target: TypeAlias = str | PriorLike | Mapping[Any, float]
Tau: TypeAlias = float | Literal["auto"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias_corrected"] | None
Carried: TypeAlias = PriorLike | Literal["train", "measure"]
AnyCalibrator: TypeAlias = Temperature | BiasCorrectedTemperature

_A_CLASS = "one probability or count a class"
_WORDS = {  # that an option may be, and what else
    "tau": (["auto"], "a number"),
    "target": (["uniform", "prior", "estimate"], _A_CLASS),
    "criterion": (get_args(Criterion), ""),
    "calibration": (["auto", "temperature", "bias_corrected"], "None"),
    "carried": (["train", "measure"], _A_CLASS),
}


class Options(NamedTuple):
    """What `LogitAdjustedClassifier` was given; the names are those of its arguments."""

    tau: Tau
    target: Target
    cv: Any
    criterion: Criterion
    calibration: Calibration
    carried: Carried
    n_jobs: int | None

    @classmethod
    def of(cls, classifier: Any) -> Options:
        """Those of a classifier, or a ValueError for the first that is none."""
        options = cls(*(getattr(classifier, name) for name in cls._fields))
        for name, (words, others) in _WORDS.items():
            value = getattr(options, name)
            by_word = isinstance(value, str) or not others or (others == "None" and value)
            if by_word and value not in words:
                allowed = ", ".join(f'"{word}"' for word in words) + (others and f" or {others}")
                raise ValueError(f"{name} must be {allowed}, got {value!r}")
        if not isinstance(options.tau, str):
            check_number(options.tau, "tau")
        return options


class Adjustment(NamedTuple):
    """What was fitted."""

    carried: Prior  # by the scores of the classifier inside
    calibrator: AnyCalibrator | None  # what is done to them before the move
    move: LogitAdjustment  # with τ but without its target, if that is estimated later
    scores: Scores | None  # out of fold, calibrated but not moved; None without use for any


def fit_adjustment(
    model: Any,
    estimator: Any,
    data: TrainingSet,
    target: Prior | None,
    options: Options,
    seed: int | None,
) -> Adjustment:
    """Fit what the options ask for; without a target, as it is estimated later.

    The model is the estimator fitted on all samples; the estimator itself is for the folds.
    """
    by_labels = isinstance(options.carried, str) and options.carried == "train"
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
    move_to = carried if by_labels and gives_probs(model) else None
    unseen = out_of_fold(estimator, data, splits, move_to, options.n_jobs)
    labels = data.labels.codes[unseen.positions]
    weights = None if data.labels.weights is None else data.labels.weights[unseen.positions]
    if carried is None:
        carried = measure_carried(unseen.logits, labels)
    counts = data.labels.counts  # and decision values may sum to anything
    scores = Scores(unseen.logits, labels, carried, counts, None, "validation", _are_logits=True)
    calibrator: AnyCalibrator | None = None
    if calibration == "temperature":
        calibrator = Temperature.fit(scores, weights=weights)
    elif calibration == "bias_corrected":
        calibrator = BiasCorrectedTemperature.fit(scores)
    scores = scores if calibrator is None else calibrator(scores)
    move = LogitAdjustment(carried, tau, target)
    if choose:
        move = LogitAdjustment.fit(scores, carried, target, options.criterion, weights)
    return Adjustment(carried, calibrator, move, scores)


def target_prior(target: Target, train: Prior, classes: npt.NDArray[Any]) -> Prior | None:
    """The prior meant; None if it is to be estimated."""
    if isinstance(target, str):
        return {"uniform": Prior.uniform(len(classes)), "prior": train}.get(target)
    if isinstance(target, Mapping):
        labels = classes.tolist()
        if set(target) != set(labels):
            missing = [label for label in labels if label not in target][:10]
            unknown = [label for label in target if label not in labels][:10]
            raise ValueError(
                "target must have a number for every label of the training set and no other; "
                f"missing: {missing}, unknown: {unknown}"
            )
        target = [float(target[label]) for label in labels]
    goal = Prior.of(target, zeros="keep")
    check_same_classes(len(classes), goal, "the training labels have", "target")
    return goal


def _declared(carried: Carried, model: Any, labels: TrainingLabels) -> Prior | None:
    """What the scores of the fitted estimator carry; None if that is to be measured."""
    if isinstance(carried, str):
        if carried == "measure":
            return None
        declared = carried_by(model, labels)  # raises if nothing is known
        return None if may_ignore_weights(model, labels) else declared
    prior = full_prior(carried, "carried")
    check_same_classes(len(labels.classes), prior, "the training labels have", "carried")
    return prior


def _calibration(
    calibration: Calibration, model: Any, target: Prior | None, choose: bool
) -> Calibration:
    """The calibration meant by "auto"; the others mean themselves."""
    if calibration != "auto":
        return calibration
    if target is None or not gives_probs(model):
        return "bias_corrected"  # estimating a prior asks for it; decision values are no logits
    return "temperature" if choose else None  # free, where out-of-fold scores are made anyway
