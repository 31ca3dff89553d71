"""Who is taken for whom: false positives, confusion between groups, the mistakes made most often.

Labelled scores, or logits or predictions with labels, as for `recall`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import ArrayLike, Floats, Numbers, to_kind
from longtail.core.numbers import check_whole
from longtail.metrics.recall import check_mask, ratio
from longtail.metrics.samples import (
    Answers,
    CountedAnswers,
    LabelsLike,
    Logits,
    NumpyAnswers,
    kind_of,
    predicted,
)

if TYPE_CHECKING:
    from torch import Tensor


@overload
def false_positives(
    answers: Scores[Tensor] | Tensor, labels: LabelsLike = None, num_classes: int | None = None
) -> Tensor: ...


@overload
def false_positives(
    answers: NumpyAnswers, labels: LabelsLike = None, num_classes: int | None = None
) -> Numbers: ...


@overload
def false_positives(
    answers: Answers, labels: LabelsLike = None, num_classes: int | None = None
) -> Any: ...


def false_positives(
    answers: Answers, labels: LabelsLike = None, num_classes: int | None = None
) -> Any:
    """For each class how many samples of other classes were taken for it (EO fig. 5), int64.

    Of an accumulator, whose samples may count by weights, float64.

    >>> false_positives([0, 0, 0, 1], [0, 1, 2, 2], num_classes=3).tolist()
    [2, 1, 0]
    """
    if isinstance(answers, CountedAnswers):
        return answers.predicted - answers.right
    guesses, truth, classes = predicted(answers, labels, num_classes)
    wrong = guesses[guesses != truth]
    return to_kind(np.bincount(wrong, minlength=classes), kind_of(answers))


def group_confusion(
    answers: Logits | ArrayLike,
    labels: LabelsLike = None,
    num_classes: int | None = None,
    *,
    groups: Mapping[str, ArrayLike],
) -> Floats:
    """A row for each group of true classes: the share right, then that wrong in each group.

    A sample counts one over those of its class, so that classes count the same; NaN in the row of
    a group without samples.

    >>> masks = {"many": [True, True, False], "few": [False, False, True]}
    >>> group_confusion([0, 0, 1, 0, 2], [0, 1, 1, 2, 2], groups=masks).tolist()
    [[0.75, 0.25, 0.0], [0.5, 0.5, 0.0]]
    """
    guesses, truth, classes = predicted(answers, labels, num_classes)
    masks = np.stack([check_mask(mask, classes, name) for name, mask in groups.items()])
    weights = 1 / np.bincount(truth, minlength=classes)[truth]
    right = guesses == truth
    rows = []
    for mask in masks:
        own = weights * mask[truth]
        wrong = [own[~right & other[guesses]].sum() for other in masks]
        rows.append(ratio(np.array([own[right].sum(), *wrong]), np.full(1 + len(masks), own.sum())))
    return np.stack(rows)


class Mistake(NamedTuple):
    """So many samples of one class are taken for another."""

    true: int
    taken_for: int
    samples: int


def most_mistaken(
    answers: Logits | ArrayLike,
    labels: LabelsLike = None,
    num_classes: int | None = None,
    *,
    classes: ArrayLike | None = None,
    most: int = 10,
) -> list[Mistake]:
    """The mistakes that most samples suffer; of equally many the larger share of their class.

    Of all true classes, or of those in the boolean mask `classes`; so many mistakes at the most.

    >>> most_mistaken([0, 0, 0, 1], [0, 1, 1, 2], most=1)
    [Mistake(true=1, taken_for=0, samples=2)]
    """
    guesses, truth, number = predicted(answers, labels, num_classes)
    check_whole(most, "most", least=1)
    wrong = guesses != truth
    if classes is not None:
        wrong &= check_mask(classes, number, "classes")[truth]
    cells, times = np.unique(truth[wrong] * number + guesses[wrong], return_counts=True)
    share = times / np.bincount(truth, minlength=number)[cells // number]
    order = np.argsort(-(times + 0.5 * share), kind="stable")[:most]
    return [
        Mistake(*divmod(int(cell), number), int(n))
        for cell, n in zip(cells[order], times[order], strict=True)
    ]
