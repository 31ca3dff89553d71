r"""What decisions cost: the mean over samples of C[y, decided], with its interval.

A sample that is left undecided costs what abstaining does. Where labels follow a target, a class
counts by it as in every other metric: Σ_y t(y) · mean_{i: y_i = y} C[y, decided_i], renormalised
over the classes that have samples.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from longtail.core import PriorLike, Scores
from longtail.core.arrays import ArrayLike, Floats, Indices, as_numpy
from longtail.core.costs import UNDECIDED, Costs, CostsLike
from longtail.core.labels import check_labels
from longtail.metrics.accumulator import Accumulator
from longtail.metrics.samples import LabelsLike, Logits, labelled
from longtail.stats import Interval


def cost(
    answers: Logits | ArrayLike,
    labels: LabelsLike = None,
    *,
    costs: CostsLike,
    target: PriorLike | None = None,
    abstain: float | None = None,
) -> Interval:
    """What a sample costs on average, and the 95 % interval of that.

    Args:
        answers: Labelled scores, which are moved to the target and decided by `Scores.decide`;
            logits, decided as they are; or decisions, with -1 where there is none.
        labels: The true classes, if the scores have none.
        costs: One number a class, or a matrix of true and decided classes, as `Scores.decide` has.
        target: Where labels follow this prior; by default each sample counts once.
        abstain: What it costs not to decide.

    >>> cost([0, 1, 0, 1], [0, 0, 1, 1], costs=[1, 5]).value
    1.5
    >>> cost([0, 1, -1, 1], [0, 0, 1, 1], costs=[1, 5], target=[3, 1], abstain=0.5).value
    0.4375
    """
    if isinstance(answers, Scores) or len(np.shape(cast(Any, answers))) != 1:
        scores = labelled(cast(Logits, answers), labels)
        checked = Costs.of(costs, scores.num_classes, scores.classes)
        moved_to = target if isinstance(answers, Scores) else None
        truth, decided = scores.labels, as_numpy(scores.decide(checked, moved_to, abstain))
        return mean_cost(checked, as_numpy(truth), decided, target, abstain)
    if labels is None:
        raise ValueError("a cost is of decisions beside the true classes, but got no labels")
    size = len(costs.values) if isinstance(costs, Costs) else len(cast(Any, costs))
    checked, truth = Costs.of(costs, size), check_labels(labels, size)
    decided = _decisions(answers, size, len(truth), abstain)
    return mean_cost(checked, truth, decided, target, abstain)


def mean_cost(
    costs: Costs,
    labels: Indices,
    decided: Indices,
    target: PriorLike | None = None,
    abstain: float | None = None,
) -> Interval:
    """The same of decisions that are known to be some."""
    size, values = len(costs.values), costs.realised(labels, decided, abstain)
    return mean_under(values, labels, size, target)


def mean_under(
    values: Floats, labels: Indices, num_classes: int, target: PriorLike | None
) -> Interval:
    """The mean of one number a sample, where labels follow the target if there is one."""
    sums = Accumulator(num_classes, target)
    sums.samples += np.bincount(labels, minlength=sums.num_classes)
    return sums.mean_of(values, labels)


def _decisions(
    answers: object, num_classes: int, num_samples: int, abstain: float | None
) -> Indices:
    decided = as_numpy(answers)
    least = 0 if abstain is None else UNDECIDED
    if decided.size and decided.dtype.kind not in "iu":
        raise ValueError(f"decisions must be class indices, got numbers of type {decided.dtype}")
    if ((decided < least) | (decided >= num_classes)).any():
        raise ValueError(
            f"decisions must lie in 0 to {num_classes - 1}, or be {UNDECIDED} if `abstain` says "
            f"what that costs, got {decided.min()} to {decided.max()}"
        )
    if len(decided) != num_samples:
        raise ValueError(f"got {len(decided)} decisions but {num_samples} labels")
    return decided.astype(np.int64)
