"""Labels and class counts, checked here, once; and groups of classes by their counts."""

from typing import Any

import numpy as np

from longtail.core.arrays import ArrayLike, Indices, as_numpy, to_kind
from longtail.group_edges import GroupEdges, GroupsLike

# Class indices may leave gaps, but a table of all classes must be worth its memory.
MOST_CLASSES, CLASSES_PER_SAMPLE = 10**6, 2
MOST = 2**53  # from here on float64 no longer tells a count from the next


def check_labels(labels: object, num_classes: int) -> Indices:
    """The labels as int64 class indices in 0 ... num_classes - 1, or a ValueError."""
    checked = as_numpy(labels)
    if checked.shape == (0,):
        checked = checked.astype(np.int64)  # an empty list has no integer to say what it is of
    if checked.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be class indices of an integer type, got {checked.dtype}; "
            "convert them, or pass probabilities where a function takes soft labels"
        )
    if checked.ndim != 1:
        raise ValueError(
            f"labels must have one dimension, one class index a sample, got shape {checked.shape}"
        )
    checked = checked.astype(np.int64, copy=False)
    wrong = (checked < 0) | (checked >= num_classes)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"labels must lie in 0 to {num_classes - 1} for {num_classes} classes, "
            f"got {int(checked[at])} at position {at}; "
            "remap the labels or give the right number of classes"
        )
    return checked


def check_num_classes(number: int, num_samples: int, where: str = "labels") -> int:
    """So many classes, or a ValueError if that many are no classes of so many samples."""
    most = max(MOST_CLASSES, CLASSES_PER_SAMPLE * num_samples)
    if number > most:
        raise ValueError(
            f"{where} must be class indices from 0 on, at most {most} classes for {num_samples} "
            f"samples, got {number} classes; ids have to be numbered anew, or given as names"
        )
    return number


def class_counts(labels: ArrayLike, num_classes: int) -> Any:
    """How many samples each class has; classes without samples count 0.

    >>> class_counts([0, 2, 0], num_classes=4).tolist()
    [2, 0, 1, 0]
    """
    counts = np.bincount(check_labels(labels, num_classes), minlength=num_classes)
    return to_kind(counts, labels)


def positions_by_class(labels: Indices, num_classes: int) -> list[Any]:
    """The positions of each class in order, by one sort: thousands of classes cost no more."""
    ends = np.cumsum(np.bincount(labels, minlength=num_classes))
    narrow = labels.astype(np.min_scalar_type(num_classes))  # which are sorted by their digits
    return np.split(np.argsort(narrow, kind="stable"), ends[:-1])


def check_counts(counts: object, num_classes: int | None = None) -> Indices:
    """The counts as int64, zeros allowed, or a ValueError."""
    checked = as_numpy(counts)
    if checked.ndim != 1 or not len(checked):
        raise ValueError(
            f"counts must be one number a class, got an array of shape {checked.shape}"
        )
    whole = checked.astype(np.float64)
    if not ((whole >= 0) & (whole == np.rint(whole)) & np.isfinite(whole)).all():
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
    return checked.astype(np.int64)


def shot_groups(counts: ArrayLike, edges: GroupsLike | None = None) -> dict[str, Any]:
    """Many, medium and few: boolean masks over the classes, by training count.

    The edges are a `GroupEdges`, or the same as text; the default is many > 100, few < 20.

    >>> {name: mask.tolist() for name, mask in shot_groups([500, 100, 20, 5]).items()}
    {'many': [True, False, False, False],
     'medium': [False, True, True, False],
     'few': [False, False, False, True]}
    >>> shot_groups([500, 100, 20, 5], "many=100,few=20,inclusive")["many"].tolist()
    [True, True, False, False]
    """
    at, checked = GroupEdges.of(edges), check_counts(counts)
    is_many = checked >= at.many if at.many_inclusive else checked > at.many
    is_few = checked <= at.few if at.few_inclusive else checked < at.few
    masks = {"many": is_many, "medium": ~(is_many | is_few), "few": is_few}
    return {name: to_kind(mask, counts) for name, mask in masks.items()}
