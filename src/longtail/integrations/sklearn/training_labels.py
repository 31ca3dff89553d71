"""The labels a classifier was trained on: classes, codes and weights, for the prior they follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from longtail.core import Prior
from longtail.core.arrays import refuse_lossy


@dataclass(frozen=True, eq=False)
class TrainingLabels:
    """Labels of a training set, or of a part of one.

    Attributes:
        classes: The labels that occur, sorted: `classes_` of a classifier trained on them.
        codes: For each sample the position of its label in `classes`.
        weights: For each sample how much it counts; None if all count the same.
    """

    classes: npt.NDArray[Any]
    codes: npt.NDArray[np.intp]
    weights: npt.NDArray[np.float64] | None

    @classmethod
    def of(
        cls, labels: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None
    ) -> TrainingLabels:
        """From labels of any kind that can be sorted."""
        classes, codes = np.unique(labels, return_inverse=True)
        return cls(classes, codes, weights)

    def part(self, positions: npt.NDArray[np.intp]) -> TrainingLabels:
        """Some of the samples, with no class but theirs."""
        weights = None if self.weights is None else self.weights[positions]
        return TrainingLabels.of(self.classes[self.codes[positions]], weights)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
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


def checked_labels(y: Any) -> npt.NDArray[Any]:
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


def codes_of(y: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The positions of labels in the sorted classes, or a ValueError."""
    labels = checked_labels(y)
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(
            f"y must have labels of the training set only, got also {_shown(unknown)}; "
            "leave those samples out"
        )
    return np.searchsorted(classes, labels)


def _shown(classes: npt.NDArray[Any]) -> str:
    names = np.asarray(classes).tolist()
    return f"{names[:10]}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"
