"""How often each class is predicted where another is true (EO fig. 5)."""

import torch

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import as_kind_of, label_tensor


def false_positives(predictions: ArrayLike, labels: ArrayLike, num_classes: int) -> Array:
    """For each class the samples of other classes that were taken for it.

    Args:
        predictions: Predicted classes, one index a sample.
        labels: True classes.
        num_classes: How many classes there are.

    Returns:
        Shape (num_classes,), int64, on the CPU.

    >>> false_positives([0, 0, 0, 1], [0, 1, 2, 2], num_classes=3).tolist()
    [2, 1, 0]
    """
    known = label_tensor(labels, num_classes).cpu()
    predicted = label_tensor(predictions, num_classes).cpu()
    if len(predicted) != len(known):
        raise ValueError(f"got {len(predicted)} predictions but {len(known)} labels")
    wrong = predicted[predicted != known]
    return as_kind_of(torch.bincount(wrong, minlength=num_classes), predictions)
