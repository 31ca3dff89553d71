"""Labels and class counts: checked here, once."""

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike, as_kind_of, as_tensor

# Class indices may leave gaps, but a table of all classes must be worth its memory.
MOST_CLASSES, CLASSES_PER_SAMPLE = 10**6, 2
MOST = 2**53  # from here on float64 no longer tells a count from the next


def check_labels(labels: ArrayLike, num_classes: int) -> Tensor:
    """The labels as int64 class indices in 0 ... num_classes - 1, or a ValueError."""
    checked = as_tensor(labels)
    if checked.shape == (0,):
        checked = checked.long()  # an empty list has no integer in it to say what it is of
    if checked.dtype == torch.bool or checked.is_floating_point() or checked.is_complex():
        raise ValueError(
            f"labels must be class indices of an integer type, got {checked.dtype}; "
            "convert them, or pass probabilities where a function takes soft labels"
        )
    if checked.dim() != 1:
        raise ValueError(
            f"labels must have one dimension, one class index a sample, "
            f"got shape {tuple(checked.shape)}"
        )
    checked = checked.long()  # small integer types would wrap where num_classes does not fit
    wrong = (checked < 0) | (checked >= num_classes)
    if wrong.any():
        at = int(wrong.nonzero()[0])
        raise ValueError(
            f"labels must lie in 0 to {num_classes - 1} for {num_classes} classes, "
            f"got {int(checked[at])} at position {at}; "
            "remap the labels or give the right number of classes"
        )
    return checked


def check_num_classes(number: int, num_samples: int, where: str = "labels") -> int:
    """So many classes, or a ValueError if that many are no classes of so many samples.

    >>> check_num_classes(8142, 20)
    8142
    """
    most = max(MOST_CLASSES, CLASSES_PER_SAMPLE * num_samples)
    if number > most:
        raise ValueError(
            f"{where} must be class indices from 0 on, at most {most} classes for {num_samples} "
            f"samples, got {number} classes; ids have to be numbered anew, or given as names"
        )
    return number


def class_counts(labels: ArrayLike, num_classes: int) -> Array:
    """How many samples each class has; classes without samples count 0.

    >>> class_counts([0, 2, 0], num_classes=4).tolist()
    [2, 0, 1, 0]
    """
    counts = torch.bincount(check_labels(labels, num_classes), minlength=num_classes)
    return as_kind_of(counts, labels)


def check_counts(counts: ArrayLike, num_classes: int | None = None) -> Tensor:
    """The counts as int64, zeros allowed, or a ValueError."""
    checked = as_tensor(counts).detach().cpu()
    whole = checked.double()
    if checked.dim() != 1 or not len(checked):
        raise ValueError(
            f"counts must be one number a class, got an array of shape {tuple(checked.shape)}"
        )
    if not ((whole >= 0) & (whole == whole.round()) & whole.isfinite()).all():
        raise ValueError(
            f"counts must be whole numbers, none negative, got {whole.tolist()[:10]}; "
            "for probabilities use Prior.of"
        )
    if (whole >= MOST).any():
        raise ValueError(
            f"counts must be below 2**53, where whole numbers are exact, got {whole.max():.17g}; "
            "for weights of that size use Prior.of"
        )
    if num_classes is not None and len(checked) != num_classes:
        raise ValueError(
            f"counts must have one entry for each of {num_classes} classes, got {len(checked)}"
        )
    return checked.long()
