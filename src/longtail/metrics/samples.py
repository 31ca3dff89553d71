"""What every metric is given, checked: labelled scores, or logits or predictions with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, RowsLike, Table, as_numpy
from longtail.core.labels import check_labels
from longtail.core.numbers import check_whole


@runtime_checkable
class RightAnswers(Protocol):
    """What recalls are made of: samples of each class, and how many of them are right."""

    samples: Floats
    right: Floats


@runtime_checkable
class CountedAnswers(RightAnswers, Protocol):
    """The same, and how many samples of any class were taken for each."""

    predicted: Floats


Logits: TypeAlias = Scores[Any] | RowsLike
# What arrays of NumPy come back for.
NumpyLogits: TypeAlias = Scores[Numbers] | Numbers | Table | Sequence[Sequence[float]]
NumpyAnswers: TypeAlias = NumpyLogits | Sequence[float] | RightAnswers
Answers: TypeAlias = Logits | ArrayLike | RightAnswers
LabelsLike: TypeAlias = ArrayLike | None  # None where the scores have them


def kind_of(answers: Answers) -> object:
    """What an array that comes back is to be the kind of."""
    return answers.logits if isinstance(answers, Scores) else answers


def labelled(logits: Logits, labels: LabelsLike = None) -> Scores[Any]:
    """Scores with labels, by default their own, and at least one sample, or a ValueError."""
    if isinstance(logits, RightAnswers):
        raise ValueError(
            f"a {type(logits).__name__} has no samples any more, only sums over those of a class: "
            "this needs the logits or the prediction of each; give the scores themselves"
        )
    if not isinstance(logits, Scores):
        scores: Scores[Any] = Scores(cast(Any, logits), labels)
    else:  # they were looked at when they were made: a few rows may sum to one by accident
        scores = logits if labels is None else replace(logits, labels=as_numpy(labels))
    if scores.labels is None:
        raise ValueError(
            "a metric compares scores with labels, but these have no labels; "
            "give them: Scores(logits, labels=labels, ...)"
        )
    if not len(scores):
        raise ValueError("a metric needs at least one sample, got none")
    return scores


def predicted(
    answers: Answers, labels: LabelsLike, num_classes: int | None
) -> tuple[Indices, Indices, int]:
    """Predicted and true classes, and how many classes there are.

    Predictions are one class index a sample; by default of as many classes as the highest says.
    """
    if isinstance(answers, Scores) or len(np.shape(cast(Any, answers))) != 1:
        scores = labelled(cast(Logits, answers), labels)
        return as_numpy(scores.predict()), as_numpy(scores.labels), scores.num_classes
    if labels is None:
        raise ValueError("a metric compares predictions with labels, got no labels")
    if num_classes is None:
        indices = [each for each in map(as_numpy, (answers, labels)) if each.dtype.kind in "iu"]
        num_classes = 1 + max((int(each.max()) for each in indices if each.size), default=0)
    classes = check_whole(num_classes, "num_classes", least=1)
    truth = check_labels(labels, classes)
    try:
        guesses = check_labels(answers, classes)
    except ValueError as error:
        raise ValueError(f"the predictions are no classes: {error}") from error
    if len(guesses) != len(truth):
        raise ValueError(f"got {len(guesses)} predictions but {len(truth)} labels")
    return guesses, truth, classes


def sums_by(index: Numbers, values: Numbers, size: int) -> Floats:
    """The sum of the values of each index from 0 to size − 1."""
    return np.asarray(np.bincount(index, values, size), np.float64)
