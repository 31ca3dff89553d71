r"""The logits of a fitted scikit-learn classifier, and the prior that they carry.

    log predict_proba,    zeros floored as `core.probabilities` does

A classifier without `predict_proba` gives its decision values; of two classes, which share one
value d, they are -d/2 and d/2. Those are no logits of anything before they are calibrated. What it
carries is

    π_y ∝ Σ_{i: y_i = y} weight_i,  times the class weights w_y it was trained with

A generative model carries the prior it was given instead. Read off the estimator that makes the
scores: the last step of a pipeline, the best one of a search. Where resampling, or class weights
inside an ensemble, leave it open, nothing is guessed: the error names the remedy.

That weights end up in the scores holds for a model that is fitted no closer than the weighted loss
asks for. Trees whose leaves are pure, forests of them (most of all with weights by bootstrap
sample) and boosting that goes on for long say the same with weights and without: what those carry
is only assumed here, and `may_ignore_weights` tells so that it is measured.
"""

from inspect import signature
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.class_weight import compute_class_weight

from longtail.core import Prior
from longtail.core.arrays import Floats
from longtail.core.probabilities import floored_log
from longtail.integrations.sklearn.training_set import EncodedLabels, TrainingLabels

# How LightGBM calls its own balancing of two classes.
_UNBALANCED = ("is_unbalance", "unbalance", "unbalanced_sets")
# CatBoost's weights, and what imbalanced-learn's ensembles resample to.
_OPAQUE = ("class_weights", "auto_class_weights", "sampling_strategy")

# "balanced" goes by the number of samples, since scikit-learn 1.7 in some by their weights.
_BY_WEIGHT = "sample_weight" in signature(compute_class_weight).parameters


def gives_probs(estimator: Any) -> bool:
    """Whether it has probabilities, or else a ValueError unless it has decision values."""
    if hasattr(estimator, "predict_proba"):
        return True
    if hasattr(estimator, "decision_function"):
        return False
    raise ValueError(
        "LogitAdjustedClassifier adjusts a classifier with predict_proba or decision_function, "
        f"{type(estimator).__name__} has neither"
    )


def class_logits(estimator: Any, X: Any) -> Floats:
    """Shape (samples, classes), in the order of the estimator's `classes_`, float64."""
    if len(estimator.classes_) == 1:  # where boosting has two columns all the same
        return np.zeros((len(estimator.predict(X)), 1))
    if not gives_probs(estimator):
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return np.stack([-values / 2, values / 2], axis=1) if values.ndim == 1 else values
    probs = np.asarray(estimator.predict_proba(X))
    return floored_log(probs.astype(np.float64, copy=False), probs.dtype)


def carried_by(estimator: Any, labels: TrainingLabels) -> Prior:
    """What the scores of a fitted estimator carry, or a ValueError if that cannot be told."""
    scoring = _scoring_part(estimator)
    if isinstance(scoring, FrozenEstimator):
        raise _untold(scoring, "it was trained before, on labels that are not known here")
    if isinstance(scoring, ComplementNB):
        raise _untold(scoring, "it leaves the prior of its labels out")
    if isinstance(scoring, CalibratedClassifierCV | SVC | NuSVC) and gives_probs(scoring):
        return labels.prior  # calibrated on the labels as they are, whatever weights came before
    if (own := _own_prior(scoring)) is not None:
        return own
    _check_nested(scoring)
    weights = _class_weights(scoring, labels)
    # Without weights the prior also knows the counts.
    return labels.prior.reweighted(weights) if np.ptp(weights) else labels.prior


def may_ignore_weights(estimator: Any, labels: TrainingLabels) -> bool:
    """Whether weights that change the prior met a model that can fit its samples regardless.

    Those with linear scores cannot, generative or calibrated ones say what they carry, and decision
    values are calibrated to what is declared, each class with its own bias.
    """
    scoring = _scoring_part(estimator)
    if isinstance(scoring, CalibratedClassifierCV | SVC | NuSVC) or not gives_probs(scoring):
        return False
    if hasattr(scoring, "coef_") or _own_prior(scoring) is not None:
        return False
    changed = bool(np.ptp(_class_weights(scoring, labels)))
    return changed or not labels.prior.is_close(Prior.of(labels.counts))


def _scoring_part(estimator: Any) -> Any:
    """The estimator whose scores these are."""
    while True:
        if isinstance(estimator, Pipeline):
            for name, step in estimator.steps:
                if hasattr(step, "fit_resample"):  # of imbalanced-learn
                    raise _untold(estimator, f"its step {name!r} resamples the classes")
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, FixedThresholdClassifier | TunedThresholdClassifierCV):
            estimator = estimator.estimator_
        elif isinstance(estimator, EncodedLabels):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator


def _own_prior(estimator: Any) -> Prior | None:
    """The prior of a generative model: naive Bayes, linear and quadratic discriminants."""
    for name in ("class_prior_", "priors_", "class_log_prior_"):
        if hasattr(estimator, name):
            values = np.asarray(getattr(estimator, name), dtype=np.float64)
            return Prior.from_log(values) if "log" in name else Prior.of(values)
    return None


def _class_weights(estimator: Any, labels: TrainingLabels) -> Floats:
    """One factor a class: what training multiplied each sample's weight by."""
    options = estimator.get_params(deep=False)
    factors = _balance(estimator, options.get("class_weight"), labels)
    if len(labels.classes) == 2:  # with more classes LightGBM and XGBoost ignore them
        if any(options.get(name) for name in _UNBALANCED):
            factors = factors / labels.counts
        positive = options.get("scale_pos_weight")
        factors = factors * np.array([1.0, 1.0 if positive is None else float(positive)])
    return factors


def _balance(estimator: Any, class_weight: Any, labels: TrainingLabels) -> Floats:
    if class_weight is None:
        return np.ones(len(labels.classes))
    if not isinstance(class_weight, str):
        weights = compute_class_weight(class_weight, classes=labels.classes, y=labels.classes)
        return np.asarray(weights, dtype=np.float64)
    if _BY_WEIGHT and isinstance(estimator, LogisticRegression | LogisticRegressionCV | LinearSVC):
        return 1 / labels.prior.probs
    return 1 / labels.counts


def _check_nested(estimator: Any) -> None:
    """A ValueError if class weights act where their effect on the scores is not known."""
    for name, value in estimator.get_params(deep=True).items():
        outer, _, last = name.rpartition("__")
        if value is not None and (last in _OPAQUE or (outer and last == "class_weight")):
            raise _untold(estimator, f"of its {name}={value!r:.60}")


def _untold(estimator: Any, reason: str) -> ValueError:
    return ValueError(
        f"cannot tell which prior the scores of {type(estimator).__name__} carry, because {reason}"
        '; say carried="measure" to fit it on validation samples, or give it: carried=[...], '
        "one probability or count for each class in sorted order"
    )
