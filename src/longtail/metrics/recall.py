r"""Per-class recalls, and the accuracies that are means of them.

Accuracy under a prior t is one weighted mean of the recalls,

    A(t) = Σ_y t(y) · recall_y  /  Σ_y t(y)              over the classes that have samples,

and its error 1 - A(t). The samples' own frequencies for t give plain accuracy, the uniform prior
balanced accuracy, a prior uniform on a group of classes the accuracy of many, medium or few. A
class without samples has no recall (NaN) and is left out, as scikit-learn's balanced accuracy does.

Every function here takes labelled scores, or logits or predictions with `labels`, the true classes,
and `num_classes`, how many classes predictions are of: by default up to the highest that occurs.
What is made of recalls is made of an accumulator, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike, Floats, as_numpy, to_kind
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes
from longtail.metrics.samples import (
    Answers,
    LabelsLike,
    NumpyAnswers,
    RightAnswers,
    kind_of,
    predicted,
)

if TYPE_CHECKING:
    from torch import Tensor

_NO_RECALL = 0.001  # what stands for a recall of zero in a geometric mean


@overload
def recalls(
    answers: Scores[Tensor] | Tensor, labels: LabelsLike = None, num_classes: int | None = None
) -> Tensor: ...


@overload
def recalls(
    answers: NumpyAnswers, labels: LabelsLike = None, num_classes: int | None = None
) -> Floats: ...


@overload
def recalls(answers: Answers, labels: LabelsLike = None, num_classes: int | None = None) -> Any: ...


def recalls(answers: Answers, labels: LabelsLike = None, num_classes: int | None = None) -> Any:
    """The share of each class's samples that were predicted right; NaN for a class without any.

    >>> recalls([0, 1, 1, 1], [0, 0, 1, 1], num_classes=3).tolist()
    [0.5, 1.0, nan]
    """
    return to_kind(_recalls(answers, labels, num_classes), kind_of(answers))


def accuracy(answers: Answers, labels: LabelsLike = None, num_classes: int | None = None) -> float:
    """The share of all samples that were predicted right."""
    right, samples = _right_and_samples(answers, labels, num_classes)
    return mean_recall(ratio(right, samples), samples)


def accuracy_under(
    answers: Answers,
    labels: LabelsLike = None,
    num_classes: int | None = None,
    *,
    target: PriorLike,
) -> float:
    """Accuracy where labels follow `target`, renormalised over the classes that have samples.

    What is predicted stays as it is: `scores.under(target)` moves it.

    >>> accuracy_under([0, 1, 1, 1], [0, 0, 1, 1], target=[30, 10])
    0.625
    """
    recall, prior = _recalls(answers, labels, num_classes), Prior.of(target)
    check_same_classes(len(recall), prior, "the samples have", "the target prior")
    return mean_recall(recall, prior.probs)


def balanced_accuracy(
    answers: Answers, labels: LabelsLike = None, num_classes: int | None = None
) -> float:
    """The mean recall: accuracy under the uniform prior."""
    return mean_recall(_recalls(answers, labels, num_classes))


def balanced_error(
    answers: Answers, labels: LabelsLike = None, num_classes: int | None = None
) -> float:
    """One minus the balanced accuracy: the measure of LA's tables."""
    return 1.0 - balanced_accuracy(answers, labels, num_classes)


def group_accuracies(
    answers: Answers,
    labels: LabelsLike = None,
    num_classes: int | None = None,
    *,
    groups: Mapping[str, ArrayLike],
) -> dict[str, float | None]:
    """The mean recall of each group; None, not 0, for a group none of whose classes has samples.

    The groups are boolean masks over the classes by name, as `shot_groups` makes them.

    >>> masks = {"many": [True, True, False], "few": [False, False, True]}
    >>> group_accuracies([0, 1, 1, 1], [0, 0, 1, 1], 3, groups=masks)
    {'many': 0.75, 'few': None}
    """
    return group_means(_recalls(answers, labels, num_classes), groups)


def geometric_mean(
    answers: Answers,
    labels: LabelsLike = None,
    num_classes: int | None = None,
    *,
    epsilon: float = _NO_RECALL,
) -> float:
    """The geometric mean of the recalls, each recall of zero replaced by `epsilon`.

    >>> geometric_mean([0, 0, 0, 0], [0, 0, 1, 1])
    0.0316
    """
    check_number(epsilon, "epsilon", 0, 1)
    return float(geometric_means(_seen(_recalls(answers, labels, num_classes)), epsilon))


def worst_class(
    answers: Answers, labels: LabelsLike = None, num_classes: int | None = None
) -> float:
    """The smallest recall."""
    return float(_seen(_recalls(answers, labels, num_classes)).min())


def ratio(parts: Floats, wholes: Floats) -> Floats:
    """One by the other; NaN where the other is zero."""
    made: Floats = np.full(wholes.shape, np.nan)
    return np.divide(parts, wholes, out=made, where=wholes > 0)


def mean_recall(recalls: Floats, weights: Floats | None = None) -> float:
    """The one weighted mean behind every accuracy here; all classes alike by default."""
    seen = ~np.isnan(recalls)
    used, mass = recalls[seen], (np.ones(len(recalls)) if weights is None else weights)[seen]
    if not mass.sum() > 0:
        raise ValueError(
            "an accuracy needs samples of a class that counts, but the "
            f"{len(recalls) - len(used)} of {len(recalls)} classes without samples hold all "
            "the weight; use another target, or data that have its classes"
        )
    return float((mass * used).sum() / mass.sum())


def group_means(recalls: Floats, groups: Mapping[str, ArrayLike]) -> dict[str, float | None]:
    """The mean of the recalls of each group; None where it has none."""
    means: dict[str, float | None] = {}
    for name, mask in groups.items():
        used = check_mask(mask, len(recalls), name) & ~np.isnan(recalls)
        means[name] = mean_recall(recalls, used.astype(float)) if used.any() else None
    return means


def class_shares(
    samples: Floats, target: Prior | None = None, groups: Mapping[str, ArrayLike] | None = None
) -> dict[str, Floats]:
    """What each class counts for in each accuracy, all classes together one.

    Classes without samples count for nothing, and what counts no class is left out: accuracy under
    a target where there is none, a group without samples.
    """
    present = (samples > 0).astype(float)
    shares = {"accuracy": samples}
    if target is not None:
        shares["accuracy_under_target"] = present * target.probs
    shares["balanced_accuracy"] = present
    shares |= {name: present * as_numpy(mask) for name, mask in (groups or {}).items()}
    return {name: share / share.sum() for name, share in shares.items() if share.sum() > 0}


def geometric_means(recalls: Floats, epsilon: float = _NO_RECALL) -> Floats:
    """Of one set of recalls or many: the classes are the last axis."""
    with np.errstate(divide="ignore"):  # an epsilon of zero
        logs = np.log(np.where(recalls == 0, epsilon, recalls))
    return np.asarray(np.exp(logs.mean(axis=-1)))


def check_mask(mask: ArrayLike, num_classes: int, name: str) -> npt.NDArray[np.bool_]:
    """A group of classes, or a ValueError."""
    checked = as_numpy(mask)
    if checked.dtype != np.bool_ or checked.shape != (num_classes,):
        raise ValueError(
            f"group {name!r} must be a boolean mask over {num_classes} classes, "
            f"got {checked.dtype} of shape {checked.shape}; shot_groups makes such masks"
        )
    return checked


def _seen(recalls: Floats) -> Floats:
    seen: Floats = recalls[~np.isnan(recalls)]
    if not len(seen):
        raise ValueError(f"none of {len(recalls)} classes has samples; give data with labels")
    return seen


def _recalls(answers: Answers, labels: LabelsLike, num_classes: int | None) -> Floats:
    return ratio(*_right_and_samples(answers, labels, num_classes))


def _right_and_samples(
    answers: Answers, labels: LabelsLike, num_classes: int | None
) -> tuple[Floats, Floats]:
    """Of each class the samples that are right, and all of them."""
    if isinstance(answers, RightAnswers):
        return answers.right, answers.samples
    guesses, truth, classes = predicted(answers, labels, num_classes)
    right = np.bincount(truth[guesses == truth], minlength=classes)
    return right.astype(float), np.bincount(truth, minlength=classes).astype(float)
