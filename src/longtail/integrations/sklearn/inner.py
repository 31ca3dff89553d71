"""Classifiers that take no labels but 0, 1, 2, ..., such as XGBoost's: fitted on the positions.

Which those are nobody can ask them. So each is fitted on the labels as they are, and where it
refuses them, on the position of each label among the sorted ones, and keeps its own name for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone


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
