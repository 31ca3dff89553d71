r"""How good sets of classes are: how often they hold the true class, and how large they are.

The coverage of class y is the share of its samples whose set holds y, and coverage under a prior t
is Σ_y t(y) · coverage_y, as accuracy is of recalls: by the samples' own frequencies, under the
target, with all classes alike (macro-coverage), or over a group of classes. Size and the shares of
sets that are empty, or hold all classes, are means under the target, or of the samples as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import stats
from longtail.core import PriorLike
from longtail.core.arrays import Array, ArrayLike, Floats, Indices, to_kind
from longtail.core.blocks import blocks
from longtail.core.labels import check_labels
from longtail.metrics.accumulator import Accumulator
from longtail.metrics.samples import sums_by
from longtail.metrics.sums import Groups
from longtail.stats import Interval

_NAMES = {
    "accuracy": "coverage",
    "accuracy_under_target": "coverage_under_target",
    "balanced_accuracy": "macro_coverage",
}


def evaluate_sets(
    sets: Array,
    labels: ArrayLike,
    target: PriorLike | None = None,
    counts: ArrayLike | None = None,
    groups: Groups | None = None,
) -> dict[str, Interval]:
    """Every measure of sets by its name, with 95 % intervals.

    They are `coverage` (each sample counts once), `coverage_under_target`, `macro_coverage` (each
    class counts the same), the coverage of each group, `size`, `empty` and `full`.

    Args:
        sets: Of each sample and class whether it is in the set: shape (N, C), boolean.
        labels: The true classes.
        target: Where labels follow this prior; by default the samples as they are.
        counts: Training samples of each class, for many, medium and few.
        groups: Their edges, or boolean masks over the classes by name.

    >>> measured = evaluate_sets([[True, True], [True, False], [True, False]], [0, 0, 1])
    >>> {name: measured[name].value for name in ("coverage", "macro_coverage", "size", "full")}
    {'coverage': 0.667, 'macro_coverage': 0.5, 'size': 1.333, 'full': 0.333}
    """
    held, sizes, truth, num_classes = _checked(sets, labels)
    sums = Accumulator(num_classes, target, counts, groups=groups)
    sums.samples += np.bincount(truth, minlength=num_classes)
    sums.right += sums_by(truth, held, num_classes)
    measured = {_NAMES.get(name, name): Interval(None) for name in (*_NAMES, *sums.groups)}
    if target is None:
        del measured["coverage_under_target"]
    for name, shares in sums.class_shares.items():
        measured[_NAMES.get(name, name)] = _share(sums.right, sums.samples, shares)
    measured["size"] = sums.mean_of(sizes, truth)
    shares = sums.weight * sums.samples
    for name, all_of in (("empty", 0), ("full", num_classes)):
        are = sums_by(truth, (sizes == all_of).astype(np.float64), num_classes)
        measured[name] = _share(are, sums.samples, shares)
    return measured


def class_coverage(sets: Array, labels: ArrayLike) -> Any:
    """The share of each class's samples whose set holds it; NaN for a class without any.

    >>> class_coverage([[True, True], [True, False], [True, False]], [0, 0, 1]).tolist()
    [1.0, 0.0]
    """
    held, _, truth, num_classes = _checked(sets, labels)
    with np.errstate(invalid="ignore"):
        shares = sums_by(truth, held, num_classes) / np.bincount(truth, minlength=num_classes)
    return to_kind(shares, sets)


def _share(right: Floats, counts: Floats, shares: Floats) -> Interval:
    seen = shares > 0
    value = float(shares[seen] @ (right[seen] / counts[seen]))
    return Interval(value, *stats.share_interval(right, counts, shares))


def _checked(sets: Any, labels: ArrayLike) -> tuple[Floats, Floats, Indices, int]:
    """Whether each set holds the true class, its size, the true classes, and of how many."""
    rows = sets if hasattr(sets, "shape") else np.asarray(sets)
    if len(rows.shape) != 2 or not rows.shape[1] or "bool" not in str(rows.dtype):
        raise ValueError(
            "sets must be booleans of shape (samples, classes), as ConformalSets gives them, got "
            f"{rows.dtype} of shape {tuple(rows.shape)}"
        )
    truth = check_labels(labels, rows.shape[1])
    if len(truth) != rows.shape[0]:
        raise ValueError(f"got {rows.shape[0]} sets but {len(truth)} labels")
    held, sizes = np.empty((2, len(truth)))
    start = 0
    for part, classes in blocks(rows, truth):
        at = slice(start, start + len(part))
        held[at], sizes[at] = part[np.arange(len(part)), classes], part.sum(axis=1)
        start = at.stop
    return held, sizes, truth, int(rows.shape[1])
