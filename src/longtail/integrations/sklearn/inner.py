r"""The classifier inside: fitted on labels that it takes, and what it says, as logits.

    log predict_proba,    zeros floored as `core.probabilities` does

A classifier without `predict_proba` gives its decision values; of two classes, which share one
value d, they are -d/2 and d/2. Those are no logits of anything before they are calibrated.

Some classifiers take no labels but 0, 1, 2, ..., such as XGBoost's. Which those are nobody can ask
them. So each is fitted on the labels as they are, and where it refuses them, on the position of
each label among the sorted ones, and keeps its own name for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from longtail.core.probabilities import floored_log


class EncodedLabels:
    """A classifier that was fitted on positions, with the labels that these stand for.

    All else that is asked of it is the classifier's own.

    Attributes:
        estimator: The fitted classifier inside, whose classes are 0, 1, 2, ...
        classes_: The labels, sorted.
    """

    def __init__(self, estimator: Any, classes: npt.NDArray[Any]) -> None:
        self.estimator = estimator
        self.classes_ = classes

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most likely label of each sample."""
        labels: npt.NDArray[Any] = self.classes_[np.asarray(self.estimator.predict(X), dtype=int)]
        return labels

    def __getattr__(self, name: str) -> Any:
        # A copy is asked for its own state before it has an estimator.
        if name == "estimator" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.estimator, name)


def fitted(estimator: Any, X: Any, y: npt.NDArray[Any], keywords: dict[str, Any]) -> Any:
    """A copy of the estimator, fitted on the labels, or on their positions if it takes no other."""
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


def class_logits(estimator: Any, X: Any) -> npt.NDArray[np.float64]:
    """Shape (samples, classes), in the order of the estimator's `classes_`, float64."""
    if len(estimator.classes_) == 1:  # where boosting has two columns all the same
        return np.zeros((len(estimator.predict(X)), 1))
    if not gives_probs(estimator):
        values = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return np.stack([-values / 2, values / 2], axis=1) if values.ndim == 1 else values
    probs = np.asarray(estimator.predict_proba(X))
    eps = None if probs.dtype.kind != "f" else float(np.finfo(probs.dtype).eps)
    return floored_log(probs.astype(np.float64, copy=False), eps)
