r"""Every metric of a set of scores at once, under the test set's prior or any other.

A test set whose labels follow q stands for a population whose labels follow t if each sample counts
t(y)/q(y), as long as p(x|y) stays the same. So under a target the logits are moved to it, its
accuracy is Σ_y t(y)·recall_y, and NLL, Brier and the calibration errors are means with those
weights. What is made of the recalls alone (balanced accuracy, groups, geometric mean, worst class)
and the accuracy of the samples as they are need no weights: there the target only changes what is
predicted.
"""

from collections.abc import Mapping

from torch import Tensor

from longtail.core import Prior, PriorLike, Scores, shot_groups
from longtail.core.arrays import ArrayLike
from longtail.core.tensors import as_tensor
from longtail.metrics.calibration import classwise_ece, ece
from longtail.metrics.proper import brier, nll
from longtail.metrics.recall import (
    accuracy,
    accuracy_under,
    balanced_accuracy,
    geometric_mean,
    group_accuracies,
    recalls,
    worst_class,
)
from longtail.metrics.samples import weights_to


def evaluate(
    scores: Scores,
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
    >>> uniform = evaluate(scores, target=Prior.uniform(2))
    >>> uniform["accuracy"], uniform["accuracy_under_target"], uniform["balanced_accuracy"]
    (0.5, 0.667, 0.667)
    """
    if scores.labels is None:
        raise ValueError(
            "evaluate compares scores with labels, but these have none; "
            "give them: Scores(logits, labels=labels, ...)"
        )
    if not len(scores):
        raise ValueError("evaluate needs at least one sample, got none")
    moved = scores if target is None else scores.under(target)
    predictions, labels = moved.predict(), scores.labels
    recall = as_tensor(recalls(predictions, labels, scores.num_classes))
    weights = None if target is None else weights_to(Prior.of(target), as_tensor(labels).cpu())
    metrics: dict[str, float | None] = {
        "accuracy": accuracy(predictions, labels, scores.num_classes),
        "accuracy_under_target": None if target is None else accuracy_under(recall, target),
        "balanced_accuracy": balanced_accuracy(recall),
        "geometric_mean": geometric_mean(recall),
        "worst_class": worst_class(recall),
        "nll": nll(moved, labels, weights),
        "brier": brier(moved, labels, weights),
        "ece": ece(moved, labels, weights),
        "classwise_ece": classwise_ece(moved, labels, weights),
        "classwise_ece_paper": classwise_ece(moved, labels, weights, form="paper"),
        "absent_classes": float(recall.isnan().sum()),
    }
    return metrics | _group_metrics(recall, _groups_of(scores, groups), taken=metrics)


def _groups_of(scores: Scores, groups: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
    if groups is not None:
        return groups
    return {} if scores.counts is None else shot_groups(scores.counts)


def _group_metrics(
    recall: Tensor, groups: Mapping[str, ArrayLike], taken: Mapping[str, object]
) -> dict[str, float | None]:
    clash = sorted(groups.keys() & taken.keys())
    if clash:
        raise ValueError(f"groups must not be named like a metric, got {clash}; rename them")
    return group_accuracies(recall, groups)
