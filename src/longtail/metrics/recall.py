r"""Per-class recalls, and the accuracies that are means of them.

Accuracy under a prior t is one weighted mean of the recalls,

    A(t) = Σ_y t(y) · recall_y  /  Σ_y t(y)              over the classes that have samples,

and its error 1 - A(t). The test set's own frequencies for t give plain accuracy, the uniform prior
balanced accuracy, a prior uniform on a group of classes the accuracy of many, medium or few. A
class without samples has no recall (NaN) and is left out, as scikit-learn's balanced accuracy does.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from longtail.core import Prior, PriorLike
from longtail.core.arrays import Array, ArrayLike
from longtail.core.prior import check_same_classes
from longtail.core.tensors import as_kind_of, as_tensor, label_tensor

NO_RECALL = 0.001  # what stands for a recall of zero in a geometric mean


def recalls(predictions: ArrayLike, labels: ArrayLike, num_classes: int) -> Array:
    """The share of each class's samples that were predicted right; NaN for a class without any.

    Args:
        predictions: Predicted classes, one index a sample.
        labels: True classes.
        num_classes: How many classes there are, those without samples included.

    Returns:
        Shape (num_classes,), float64, on the CPU.

    >>> recalls([0, 1, 1, 1], [0, 0, 1, 1], num_classes=3).tolist()
    [0.5, 1.0, nan]
    """
    hits, counts = _hits_and_counts(predictions, labels, num_classes)
    return as_kind_of(hits / counts, predictions)


def accuracy(predictions: ArrayLike, labels: ArrayLike, num_classes: int) -> float:
    """The share of all samples that were predicted right.

    >>> accuracy([0, 1, 1, 1], [0, 0, 1, 1], num_classes=3)
    0.75
    """
    hits, counts = _hits_and_counts(predictions, labels, num_classes)
    return _mean(hits / counts, counts)


def accuracy_under(recalls: ArrayLike, target: PriorLike) -> float:
    """Accuracy where labels follow `target`, renormalised over the classes that have a recall.

    Args:
        recalls: One a class, NaN where there is none.
        target: A Prior or class counts.

    >>> accuracy_under([0.9, 0.5, float("nan")], target=[30, 10, 20])
    0.8
    """
    checked, prior = _check_recalls(recalls), Prior.of(target)
    check_same_classes(len(checked), prior, "the recalls have", "the target prior")
    return _mean(checked, as_tensor(prior.probs))


def balanced_accuracy(recalls: ArrayLike) -> float:
    """The mean recall: accuracy under the uniform prior.

    >>> balanced_accuracy([0.9, 0.5, float("nan")])
    0.7
    """
    checked = _check_recalls(recalls)
    return _mean(checked, torch.ones_like(checked))


def balanced_error(recalls: ArrayLike) -> float:
    """One minus the balanced accuracy: the measure of LA's tables.

    >>> balanced_error([0.9, 0.5, float("nan")])
    0.3
    """
    return 1.0 - balanced_accuracy(recalls)


def group_accuracies(
    recalls: ArrayLike, groups: Mapping[str, ArrayLike]
) -> dict[str, float | None]:
    """The mean recall of each group; None, not 0, for a group none of whose classes has one.

    Args:
        recalls: One a class, NaN where there is none.
        groups: A boolean mask over the classes for each name, as `shot_groups` makes them.

    >>> masks = {"many": [True, True, False], "few": [False, False, True]}
    >>> group_accuracies([0.9, 0.5, float("nan")], masks)
    {'many': 0.7, 'few': None}
    """
    checked = _check_recalls(recalls)
    accuracies: dict[str, float | None] = {}
    for name, mask in groups.items():
        inside = _check_mask(mask, len(checked), name)
        seen = (inside & ~checked.isnan()).any()
        accuracies[name] = _mean(checked, inside.double()) if seen else None
    return accuracies


def geometric_mean(recalls: ArrayLike, epsilon: float = NO_RECALL) -> float:
    """The geometric mean of the recalls, each recall of zero replaced by `epsilon`.

    >>> geometric_mean([0.9, 0.4, float("nan")])
    0.6
    >>> geometric_mean([1.0, 0.0])
    0.0316
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon stands in for a recall, so it must lie in 0 to 1, got {epsilon}")
    seen = _seen(_check_recalls(recalls))
    return float(torch.where(seen == 0, epsilon, seen).log().mean().exp())


def worst_class(recalls: ArrayLike) -> float:
    """The smallest recall.

    >>> worst_class([0.9, 0.5, float("nan")])
    0.5
    """
    return float(_seen(_check_recalls(recalls)).min())


def _mean(recalls: Tensor, weights: Tensor) -> float:
    """The one weighted mean behind every accuracy here."""
    has_samples = ~recalls.isnan()
    used, mass = recalls[has_samples], weights[has_samples]
    if not mass.sum() > 0:
        raise ValueError(
            "an accuracy needs samples of a class that counts, but the "
            f"{len(recalls) - len(used)} of {len(recalls)} classes without samples hold all "
            "the weight; use another target, or data that have its classes"
        )
    return float((mass * used).sum() / mass.sum())


def _seen(recalls: Tensor) -> Tensor:
    seen = recalls[~recalls.isnan()]
    if not len(seen):
        raise ValueError(f"none of {len(recalls)} classes has samples; give data with labels")
    return seen


def _hits_and_counts(
    predictions: ArrayLike, labels: ArrayLike, num_classes: int
) -> tuple[Tensor, Tensor]:
    """For each class the samples predicted right, and all of them, in float64."""
    known = label_tensor(labels, num_classes).cpu()
    try:
        predicted = label_tensor(predictions, num_classes).cpu()
    except ValueError as error:
        raise ValueError(f"the predictions are no classes: {error}") from error
    if len(predicted) != len(known):
        raise ValueError(f"got {len(predicted)} predictions but {len(known)} labels")
    hits = torch.bincount(known[predicted == known], minlength=num_classes)
    return hits.double(), torch.bincount(known, minlength=num_classes).double()


def _check_recalls(recalls: ArrayLike) -> Tensor:
    checked = as_tensor(recalls).detach().to("cpu", torch.float64)
    if checked.dim() != 1 or ((checked < 0) | (checked > 1)).any():
        raise ValueError(
            "recalls must be one number in 0 to 1 a class, or NaN where a class has no samples, "
            f"got shape {tuple(checked.shape)} with values {checked.flatten()[:10].tolist()}; "
            "make them with recalls(predictions, labels, num_classes)"
        )
    return checked


def _check_mask(mask: ArrayLike, num_classes: int, name: str) -> Tensor:
    checked = as_tensor(mask).cpu()
    if checked.dtype != torch.bool or checked.shape != (num_classes,):
        raise ValueError(
            f"group {name!r} must be a boolean mask over {num_classes} classes, "
            f"got {checked.dtype} of shape {tuple(checked.shape)}; shot_groups makes such masks"
        )
    return checked
