r"""Every metric of a set of scores at once, under the test set's prior or any other.

A test set whose labels follow q stands for a population whose labels follow t if each sample counts
t(y)/q(y), as long as p(x|y) stays the same. So under a target the logits are moved to it, its
accuracy is Σ_y t(y)·recall_y, and NLL, Brier and the calibration errors are means with those
weights. What is made of the recalls alone (balanced accuracy, groups, geometric mean, worst class)
and the accuracy of the samples as they are need no weights: there the target only changes what is
predicted.
"""

from collections.abc import Mapping
from typing import Any

from longtail.core import PriorLike, Scores
from longtail.core.arrays import ArrayLike
from longtail.metrics.accumulator import Accumulator
from longtail.metrics.samples import labelled


def evaluate(
    scores: Scores[Any],
    target: PriorLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> dict[str, float | None]:
    """All metrics of the scores, as a flat dict.

    Args:
        scores: Logits with labels.
        target: The prior to evaluate under, a Prior or class counts: the scores are moved to it,
            which raises UnknownPriorError if it is not known what they carry. Without it the
            scores stay as they are and every sample counts the same.
        groups: A boolean mask over the classes for each name. By default many, medium and few,
            if the scores know the training counts.

    Returns:
        `accuracy` (of the samples as they are, each counting once), `accuracy_under_target` (None
        without a target), `balanced_accuracy`, `geometric_mean`, `worst_class`, `nll`, `brier`,
        `ece`, `classwise_ece`, `classwise_ece_paper`, `absent_classes` (how many classes have no
        samples and were left out of every recall), and one accuracy a group, None for a group
        without samples.

    >>> logits = [[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.5, 0.0]]
    >>> scores = Scores(logits, labels=[0, 0, 0, 1], carried=[90, 10])
    >>> plain = evaluate(scores)
    >>> plain["accuracy"], plain["balanced_accuracy"], plain["nll"]
    (0.75, 0.5, 0.548)
    >>> uniform = evaluate(scores, target=[1, 1])
    >>> uniform["accuracy"], uniform["accuracy_under_target"], uniform["balanced_accuracy"]
    (0.5, 0.667, 0.667)
    """
    measured = labelled(scores)
    moved = measured if target is None else measured.under(target)
    return Accumulator.of(moved, target, scores.counts, groups=groups).values()
