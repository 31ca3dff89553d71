r"""How well class centres stand apart: class-distance normalised variance, and how far they moved.

    CDNV(y, y') = (Var_y + Var_y') / (2 ‖μ_y − μ_y'‖²)                                  (NCM §6)

Its mean over pairs bounds the error of the nearest class mean; learning the centres lowers it with
the variances as they are (NCM fig. 6). Var is E‖Φ − μ‖²: `intra_class_variance(measure="trace")`.
"""

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import as_kind_of, as_tensor
from longtail.metrics.representation_classes import check_rows
from longtail.metrics.representation_distances import squared_distances

# Rows of a block of pairs times classes: 32 MB in float64.
_BLOCK = 2**22


def cdnv(variances: ArrayLike, centers: Array) -> Array:
    """The CDNV of all pairs of classes, shape (C, C), float64.

    Args:
        variances: Var of each class; NaN where a class has too few samples.
        centers: Shape (C, D): class means, or learned centres.

    Returns:
        NaN on the diagonal and for classes without a variance, inf where centres coincide.

    >>> cdnv([1.0, 3.0], [[0.0, 0.0], [2.0, 0.0]]).tolist()
    [[nan, 0.5], [0.5, nan]]
    """
    checked, rows = _check(variances, centers)
    return as_kind_of(_pairs(checked, rows, slice(0, len(rows))), centers)


def mean_cdnv(variances: ArrayLike, centers: Array) -> float:
    """The mean CDNV over the pairs that have one, a block of rows at a time; NaN if none has.

    >>> mean_cdnv([1.0, 3.0, float("nan")], [[0.0, 0.0], [2.0, 0.0], [5.0, 5.0]])
    0.5
    """
    checked, rows = _check(variances, centers)
    size = max(1, _BLOCK // len(rows))
    total, number = 0.0, 0
    for start in range(0, len(rows), size):
        pairs = _pairs(checked, rows, slice(start, start + size))
        total += float(pairs.nansum())
        number += int((~pairs.isnan()).sum())
    return total / number if number else float("nan")


def centroid_displacement(centers: Array, start: ArrayLike) -> Array:
    """How far each centre lies from where it started, ‖μ_y − μ̃_y‖ (NCM fig. 6), float64.

    >>> centroid_displacement([[3.0, 4.0]], [[0.0, 0.0]]).tolist()
    [5.0]
    """
    moved, before = check_rows(centers, "centers"), check_rows(start, "start")
    if moved.shape != before.shape:
        raise ValueError(
            f"centers and start must have one shape, got {tuple(moved.shape)} and "
            f"{tuple(before.shape)}"
        )
    return as_kind_of((moved - before).norm(dim=1), centers)


def _pairs(variances: Tensor, rows: Tensor, at: slice) -> Tensor:
    known = ~rows.isnan().any(dim=1)
    filled = torch.where(known[:, None], rows, rows[known].mean(dim=0))
    squares = squared_distances(filled[at], filled)
    values = (variances[at, None] + variances) / (2 * squares)
    index = torch.arange(len(rows), device=rows.device)
    same = index[at, None] == index
    return values.masked_fill(same | ~known[at, None] | ~known, torch.nan)


def _check(variances: ArrayLike, centers: Array) -> tuple[Tensor, Tensor]:
    checked = as_tensor(variances).detach().to("cpu", torch.float64)
    rows = check_rows(centers, "centers")
    if checked.shape != (len(rows),) or (checked < 0).any():
        raise ValueError(
            f"variances must be one number a class of {len(rows)}, none negative, "
            f"got shape {tuple(checked.shape)}"
        )
    return checked, rows
