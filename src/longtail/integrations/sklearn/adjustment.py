r"""What is fitted once the classifier inside is: what its scores carry, a calibrator, τ.

In this order, each on out-of-fold scores, which are made only if one of them asks for it. A
temperature comes before the move: after it, it would shrink the prior along with the evidence. It
changes no decision at the best τ, which grows and shrinks with it, but makes probabilities right.

A class of two samples or more is dealt out to the folds so that every model knows it. A class of
one sample is in every model and therefore held out by none: it has no say in what is fitted on the
scores. A fold's model carries the prior of its own training part, which for a class of few samples
is not that of the whole: its scores are moved to what the model of all samples carries. A class
that the model does not know, which only splits of a user's own can bring about, is ruled out by it,
and the samples of that class are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from longtail.core import Prior, PriorLike, Scores, measure_carried, retarget
from longtail.core.arrays import Floats, Numbers
from longtail.core.minimise import UnsettledError
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.data import stratified_folds
from longtail.integrations.sklearn.carried import (
    carried_by,
    class_logits,
    gives_probs,
    may_ignore_weights,
)
from longtail.integrations.sklearn.training_set import Positions, TrainingLabels, TrainingSet
from longtail.posthoc import BiasCorrectedTemperature, LogitAdjustment, Temperature
from longtail.posthoc.tau import Criterion

Target: TypeAlias = str | PriorLike | Mapping[Any, float]
Tau: TypeAlias = float | Literal["auto"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias_corrected"] | None
Carried: TypeAlias = PriorLike | Literal["train", "measure"]
AnyCalibrator: TypeAlias = Temperature | BiasCorrectedTemperature
OutOfFold: TypeAlias = tuple[Floats, Positions]
Splits: TypeAlias = list[tuple[Positions, Positions]]

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
    logits, positions = out_of_fold(estimator, data, splits, move_to, options.n_jobs)
    labels, counts = data.labels.codes[positions], data.labels.counts
    weights = None if data.labels.weights is None else data.labels.weights[positions]
    if carried is None:
        try:
            carried = measure_carried(logits, labels)
        except UnsettledError:  # the classes are told apart whatever the scores carry
            if not by_labels:
                raise
            carried = carried_by(model, data.labels)
    # Decision values may sum to anything.
    scores = Scores(logits, labels, carried, counts, None, "validation", _are_logits=True)
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


def out_of_fold(
    estimator: Any, data: TrainingSet, splits: Splits, move_to: Prior | None, n_jobs: int | None
) -> OutOfFold:
    """Logits of the validation samples of all splits, and which samples these are.

    They are moved to what the model of all samples carries, `move_to`; None leaves them alone.
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_score_fold)(estimator, data, train, test, move_to) for train, test in splits
    )
    logits, positions = zip(*parts, strict=True)
    return np.concatenate(logits), np.concatenate(positions)


def splits_of(cv: Any, data: TrainingSet, seed: int | None) -> Splits:
    """What to train on and what to hold out; none at all if no class has two samples.

    `cv` is a number of folds, or what scikit-learn takes for one: a splitter, or splits.
    """
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, data.y, classifier=True)
        splits = splitter.split(data.X, data.y, **data.metadata.split)
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]
    if cv < 2:
        raise ValueError(f"cv must be two folds or more, or a splitter, got {cv}")
    codes = data.labels.codes
    single = data.labels.counts[codes] == 1
    if single.all():
        return []
    if seed is None:  # by NumPy's global stream, as scikit-learn takes None
        seed = int(check_random_state(None).randint(2**31 - 1))
    dealt = np.asarray(stratified_folds(codes, min(int(cv), len(codes)), seed))
    folds = np.where(single, -1, dealt)
    numbers = np.unique(folds[~single])
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in numbers]


def _score_fold(
    estimator: Any, data: TrainingSet, train: Positions, test: Positions, move_to: Prior | None
) -> OutOfFold:
    model = data.fit(estimator, train)
    columns = np.searchsorted(data.labels.classes, model.classes_)
    scored = np.asarray(test)[np.isin(data.labels.codes[test], columns)]
    logits = np.full((len(scored), len(data.labels.classes)), -np.inf)
    if len(scored):
        own = class_logits(model, _safe_indexing(data.X, scored))
        if move_to is not None:
            carried = carried_by(model, data.labels.part(train))
            own = retarget(own, carried, Prior.from_log(move_to.log[columns]))
        logits[:, columns] = own
    return logits, scored


def target_prior(target: Target, train: Prior, classes: Numbers) -> Prior | None:
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
