r"""Measures of features and of the weights over them: how far classes spread, and stand apart.

    Σ_y = (1/n_y) Σ_{i: y_i=y} (Φ_i − μ_y)(Φ_i − μ_y)ᵀ,        σ_y = max_k |Δ_k|       (NCM eq. 1)

with Σ_y = Q Δ Qᵀ: the intra-class variance, that of the widest direction, which falls with the
class's frequency (NCM fig. 2). NCM A.2 tries shrunk estimates of Σ_y as well. The largest
intra-class distance of a sample is max ‖Φ − Φ⁺‖ over its class, over the largest ‖Φ‖ of all samples
(ELM fig. 4). Class-distance normalised variance,

    CDNV(y, y') = (Var_y + Var_y') / (2 ‖μ_y − μ_y'‖²),        Var = E‖Φ − μ‖²          (NCM §6)

bounds by its mean over pairs the error of the nearest class mean (NCM fig. 6). Of a linear layer,
½ c_k·w_k is the empirical offset where c are the class means (EO fig. 1), and the estimated one
where they are learned centres (fig. 3). Norms ‖w_k‖ rise with frequency under SGD and not under
Adam (LA fig. 1), which is why dividing by them is no remedy that holds.
"""

from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core.arrays import ArrayLike, Floats, RowsLike, as_numpy, to_kind
from longtail.core.blocks import slices
from longtail.core.numbers import check_choice, check_per_class
from longtail.metrics.class_rows import Estimator, by_class
from longtail.stats import rank_correlation

__all__ = [
    "cdnv",
    "centroid_displacement",
    "class_means",
    "class_offsets",
    "frequency_correlation",
    "intra_class_variance",
    "largest_intra_class_distances",
    "mean_cdnv",
    "weight_norms",
]

Measure: TypeAlias = Literal["largest_eigenvalue", "trace", "mean_distance"]

_ROUNDING = 16  # how many units in the last place of ‖x‖² + ‖μ‖² are no distance


def __dir__() -> list[str]:
    return __all__


def class_means(features: RowsLike, labels: ArrayLike, num_classes: int) -> Any:
    """The mean feature of each class, shape (C, D), float64; NaN for a class without samples.

    >>> class_means([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]], [0, 0, 2], num_classes=3).tolist()
    [[1.0, 1.0], [nan, nan], [5.0, 5.0]]
    """
    rows = by_class(features, labels, num_classes)
    return to_kind(np.stack([rows.mean(label) for label in range(num_classes)]), features)


def intra_class_variance(
    features: RowsLike,
    labels: ArrayLike,
    num_classes: int,
    measure: Measure = "largest_eigenvalue",
    estimator: Estimator = "empirical",
) -> Any:
    """The spread of each class about its mean; NaN for a class of fewer than two samples.

    It is the largest eigenvalue of the covariance, as in the paper, or its trace (the mean squared
    distance to the mean, the Var of CDNV), or the mean distance itself. The covariance may be
    shrunk, which changes its eigenvalues only. A memory-mapped array is read a class at a time.

    >>> features = [[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -1.0], [9.0, 9.0]]
    >>> intra_class_variance(features, [0, 0, 0, 0, 1], num_classes=2).tolist()
    [2.0, nan]
    """
    check_choice(estimator, Estimator, "estimator")
    check_choice(measure, Measure, "measure")
    if measure == "mean_distance" and estimator != "empirical":
        raise ValueError("the mean distance is not made of a covariance; leave out the estimator")
    rows = by_class(features, labels, num_classes)
    spread = np.full(num_classes, np.nan)
    for label, places in enumerate(rows.places):
        if len(places) < 2:
            continue
        if measure == "largest_eigenvalue":
            spread[label] = rows.largest_eigenvalue(label, estimator)
        else:
            spread[label] = rows.mean_power(label, 2 if measure == "trace" else 1)
    return to_kind(spread, features)


def largest_intra_class_distances(
    features: RowsLike, labels: ArrayLike, num_classes: int, normalised: bool = True
) -> Any:
    """For each sample the distance to the farthest one of its class (ELM fig. 4).

    NaN for a sample that is alone in its class; by default over the largest norm of all features.

    >>> features = [[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]]
    >>> largest_intra_class_distances(features, [0, 0, 1], num_classes=2).tolist()
    [0.5, 0.5, nan]
    """
    rows = by_class(features, labels, num_classes)
    farthest = np.full(sum(map(len, rows.places)), np.nan)
    norm = 0.0
    for label, places in enumerate(rows.places):
        mean = rows.mean(label)
        for at, block in rows.blocks(label):
            norm = max(norm, float(np.linalg.norm(block, axis=1).max()))
            if len(places) > 1:
                # About the class mean a product costs no digits that the largest would need.
                others = (other - mean for _, other in rows.blocks(label))
                squares = [_squared_distances(block - mean, other).max(axis=1) for other in others]
                farthest[at] = np.sqrt(np.max(squares, axis=0))
    return to_kind(farthest / norm if normalised else farthest, features)


def cdnv(variances: ArrayLike, centers: RowsLike) -> Any:
    """The CDNV of all pairs of classes, shape (C, C), float64.

    From the Var of each class and its mean, or a learned centre. NaN on the diagonal and for
    classes without a variance, inf where centres coincide.

    >>> cdnv([1.0, 3.0], [[0.0, 0.0], [2.0, 0.0]]).tolist()
    [[nan, 0.5], [0.5, nan]]
    """
    checked, rows = _check_variances(variances, centers)
    return to_kind(_pairs(checked, rows, slice(0, len(rows))), centers)


def mean_cdnv(variances: ArrayLike, centers: RowsLike) -> float:
    """The mean CDNV over the pairs that have one, a block of rows at a time; NaN if none has.

    >>> mean_cdnv([1.0, 3.0, float("nan")], [[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    0.5
    """
    checked, rows = _check_variances(variances, centers)
    total, number = 0.0, 0
    for at in slices(len(rows), len(rows)):
        pairs = _pairs(checked, rows, at)
        total += float(np.nansum(pairs))
        number += int((~np.isnan(pairs)).sum())
    return total / (number or float("nan"))


def centroid_displacement(centers: RowsLike, start: RowsLike | ArrayLike) -> Any:
    """How far each centre lies from where it started, ‖μ_y − μ̃_y‖ (NCM fig. 6), float64."""
    moved, before = _check_pair(centers, start, ("centers", "start"))
    return to_kind(np.linalg.norm(moved - before, axis=1), centers)


def class_offsets(weight: RowsLike, centers: RowsLike | ArrayLike) -> Any:
    """½ c_k·w_k of each class, float64; NaN where a class has no centre.

    From the weight of a linear layer, and class means or learned centres, each of shape (C, D).

    >>> class_offsets([[1.0, 2.0], [0.0, 1.0]], [[2.0, 2.0], [4.0, 3.0]]).tolist()
    [3.0, 1.5]
    """
    rows, around = _check_pair(weight, centers, ("weight", "centers"))
    return to_kind(0.5 * (rows * around).sum(axis=1), weight)


def weight_norms(weight: RowsLike) -> Any:
    """‖w_k‖ of each class, float64."""
    return to_kind(np.linalg.norm(_check_rows(weight, "weight"), axis=1), weight)


def frequency_correlation(values: ArrayLike, counts: ArrayLike) -> float:
    """Spearman's rank correlation of a number a class with the class counts.

    Classes whose number is NaN are left out. NaN if fewer than two are left or all are alike.

    >>> frequency_correlation([0.1, 0.4, 0.2, float("nan")], [90, 5, 30, 1])
    -1.0
    """
    numbers = as_numpy(values).astype(np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"values must be one number a class, got shape {numbers.shape}")
    sizes = check_per_class(counts, len(numbers), "counts", least="zero")
    finite = ~np.isnan(numbers)
    return rank_correlation(numbers[finite], sizes[finite])


def _pairs(variances: Floats, rows: Floats, at: slice) -> Floats:
    has_center = np.asarray(~np.isnan(rows).any(axis=1))
    middle = rows[has_center].mean(axis=0) if has_center.any() else 0.0
    # Taken about their mean, whose digits a difference of squares would lose.
    filled = np.where(has_center[:, None], rows - middle, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # centres that coincide
        values = (variances[at, None] + variances) / (2 * _squared_distances(filled[at], filled))
    index = np.arange(len(rows))
    values[(index[at, None] == index) | ~has_center[at, None] | ~has_center] = np.nan
    return values


def _squared_distances(rows: Floats, others: Floats) -> Floats:
    """‖x − y‖² of all pairs; what is below the rounding error of the sum is zero."""
    whole = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)
    squared: Floats = whole - 2 * (rows @ others.T)
    squared[squared <= _ROUNDING * np.finfo(float).eps * whole] = 0.0
    return squared


def _check_variances(variances: ArrayLike, centers: RowsLike) -> tuple[Floats, Floats]:
    checked, rows = as_numpy(variances).astype(np.float64), _check_rows(centers, "centers")
    if checked.shape != (len(rows),) or (checked < 0).any():
        raise ValueError(
            f"variances must be one number a class of {len(rows)}, none negative, "
            f"got shape {checked.shape}"
        )
    return checked, rows


def _check_pair(first: object, second: object, names: tuple[str, str]) -> tuple[Floats, Floats]:
    one, other = _check_rows(first, names[0]), _check_rows(second, names[1])
    if one.shape != other.shape:
        raise ValueError(
            f"{names[0]} and {names[1]} must have one shape, got {one.shape} and {other.shape}"
        )
    return one, other


def _check_rows(values: object, name: str) -> Floats:
    """One row a class in float64, or a ValueError."""
    checked = as_numpy(values).astype(np.float64)
    if checked.ndim != 2:
        raise ValueError(f"{name} must have shape (C, D), got {checked.shape}")
    return checked
