"""What an estimator is fitted on, whole or in part: samples, labels, weights, metadata, seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from longtail.core import Prior
from longtail.core.arrays import Floats, Indices, Numbers, refuse_lossy

Weights: TypeAlias = Floats | None
Positions: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """Labels of a training set, or of a part of one."""

    classes: Numbers  # that occur, sorted: `classes_` of a classifier trained on them
    codes: Positions  # for each sample the position of its label in `classes`
    weights: Weights  # how much each counts; None if all count the same

    @classmethod
    def of(cls, labels: Numbers, weights: Weights) -> TrainingLabels:
        """From labels of any kind that can be sorted."""
        classes, codes = np.unique(labels, return_inverse=True)
        return cls(classes, codes, weights)

    def part(self, positions: Positions) -> TrainingLabels:
        """Some of the samples, with no class but theirs."""
        weights = None if self.weights is None else self.weights[positions]
        return TrainingLabels.of(self.classes[self.codes[positions]], weights)

    @property
    def counts(self) -> Indices:
        """Samples of each class, whatever they weigh."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def prior(self) -> Prior:
        """The prior that the labels follow: that of their weights, if they have any."""
        if self.weights is None:
            return Prior.of(self.counts)
        total = np.bincount(self.codes, self.weights, minlength=len(self.classes))
        if not (total > 0).all():
            none = self.classes[total <= 0].tolist()[:10]
            raise ValueError(
                f"sample_weight must give every class some weight, the classes {none} have none; "
                "leave their samples out, or give them weights above zero"
            )
        return Prior.of(total)


class Routed(NamedTuple):
    """Where metadata goes."""

    fit: dict[str, Any]  # keywords of the inner estimator's fit
    split: dict[str, Any]  # keywords of the splitter's split
    weights: Weights  # that the inner estimator is trained with


class TrainingSet(NamedTuple):
    """Samples, their labels as given and as codes, and what else goes to fit."""

    X: Any
    y: Any
    labels: TrainingLabels
    metadata: Routed

    def fit(self, estimator: Any, at: Positions | None = None) -> Any:
        """A copy of the estimator, fitted on all samples or on some."""
        if at is None:
            return _fitted(estimator, self.X, self.y, self.metadata.fit)
        keywords = {  # what has one entry a sample is cut
            name: _safe_indexing(value, at) if _length(value) == len(self.labels.codes) else value
            for name, value in self.metadata.fit.items()
        }
        X, y = _safe_indexing(self.X, at), _safe_indexing(self.y, at)
        return _fitted(estimator, X, y, keywords)


class EncodedLabels:
    """A classifier that takes no labels but 0, 1, 2, ..., such as XGBoost's, with those they are.

    `classes_` are sorted; all else that is asked of it is the classifier's own.
    """

    def __init__(self, estimator: Any, classes: Numbers) -> None:
        self.estimator, self.classes_ = estimator, classes

    def predict(self, X: Any) -> Numbers:
        """The most likely label of each sample."""
        return np.asarray(self.classes_[np.asarray(self.estimator.predict(X), dtype=int)])

    def __getattr__(self, name: str) -> Any:
        # A copy is asked for its own state before it has an estimator.
        if name == "estimator" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.estimator, name)


def checked_labels(y: Any) -> Numbers:
    """One label a sample, or a ValueError."""
    if y is None:
        raise ValueError(
            "LogitAdjustedClassifier requires y to be passed, but the target y is None"
        )
    refuse_lossy(y)
    labels = column_or_1d(y, warn=True)
    check_classification_targets(labels)
    return np.asarray(labels)


def check_trained_on(estimator: Any, labels: TrainingLabels) -> None:
    """A ValueError unless the estimator knows the classes of the labels and no other."""
    if not np.array_equal(estimator.classes_, labels.classes):
        raise ValueError(
            f"{type(estimator).__name__} knows the classes {_shown(estimator.classes_)}, but y has "
            f"{_shown(labels.classes)}; a frozen estimator needs samples of each of its classes"
        )


def codes_of(y: Any, classes: Numbers) -> Positions:
    """The positions of labels in the sorted classes, or a ValueError."""
    labels = checked_labels(y)
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(
            f"y must have labels of the training set only, got also {_shown(unknown)}; "
            "leave those samples out"
        )
    return np.searchsorted(classes, labels)


def routed(owner: Any, sample_weight: Any, fit_params: dict[str, Any]) -> Routed:
    """By scikit-learn's metadata routing where that is on; else all goes to the inner estimator."""
    weighted, split = {} if sample_weight is None else {"sample_weight": sample_weight}, {}
    if get_config()["enable_metadata_routing"]:
        sent = process_routing(owner, "fit", **weighted, **fit_params)
        fit, split = dict(sent["estimator"]["fit"]), dict(sent["splitter"]["split"])
    elif weighted:
        fit = {**fit_params, _weight_name(owner.estimator): sample_weight}
    else:
        fit = dict(fit_params)
    weights = None
    for name in fit:
        if name.split("__")[-1] == "sample_weight" and fit[name] is not None:
            refuse_lossy(fit[name])
            # Whatever can be read as an array; as one it can be cut.
            weights = fit[name] = np.asarray(fit[name], dtype=np.float64)
    return Routed(fit, split, weights)


def seeded(estimator: Any, random_state: Any) -> tuple[Any, int | None]:
    """A copy of the estimator, with one seed for every random state in it that is not set.

    And that seed, drawn from what scikit-learn calls a random state; None, not reproducible, of
    None.
    """
    copy = clone(estimator)
    if random_state is None:
        return copy, None
    seed, own = int(check_random_state(random_state).randint(2**31 - 1)), copy.get_params(deep=True)
    free = [name for name in own if name.split("__")[-1] == "random_state" and own[name] is None]
    copy.set_params(**dict.fromkeys(free, seed))  # which a frozen estimator does not return
    return copy, seed


def _fitted(estimator: Any, X: Any, y: Numbers, keywords: dict[str, Any]) -> Any:
    """A copy of the estimator, fitted on the labels, or on their positions if it takes no other.

    Which those are nobody can ask them: positions are tried where the labels are refused.
    """
    try:
        return clone(estimator).fit(X, y, **keywords)
    except (ValueError, TypeError) as error:
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        if np.array_equal(classes, np.arange(len(classes))):
            raise
        try:
            model = clone(estimator).fit(X, codes, **keywords)
        except (ValueError, TypeError):
            raise error from None  # it was not the labels
        return EncodedLabels(model, classes)


def _weight_name(estimator: Any) -> str:
    """The keyword by which fit takes sample weights: in a pipeline, that of its last step."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{_weight_name(last)}"
    raise ValueError(
        f"sample_weight was given, but {type(estimator).__name__}.fit does not take it; "
        "leave it out, or use an estimator that does"
    )


def _length(value: Any) -> int | None:
    """How many samples an array, a frame or a list has; None of anything else."""
    if hasattr(value, "shape"):
        return int(value.shape[0]) if len(value.shape) else None
    return len(value) if isinstance(value, list | tuple) else None


def _shown(classes: Numbers) -> str:
    names = np.asarray(classes).tolist()
    return f"{names[:10]}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"
