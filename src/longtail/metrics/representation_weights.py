r"""Weights and offsets of a linear classifier, and how they follow the class frequencies.

    offset_k = ½ c_k·w_k

is the empirical offset where c are the class means (EO fig. 1) and the estimated offset where they
are learned centres (fig. 3). Norms ‖w_k‖ rise with frequency under SGD and not under Adam (LA fig.
1), which is why dividing by them is no remedy that holds.
"""

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import as_kind_of, as_tensor, per_class_tensor
from longtail.metrics.representation_classes import check_rows


def class_offsets(weight: Array, centers: ArrayLike) -> Array:
    """½ c_k·w_k of each class, float64; NaN where a class has no centre.

    Args:
        weight: Of a linear layer, shape (C, D).
        centers: Class means or learned centres, shape (C, D).

    >>> class_offsets([[1.0, 2.0], [0.0, 1.0]], [[2.0, 2.0], [4.0, 3.0]]).tolist()
    [3.0, 1.5]
    """
    rows, around = check_rows(weight, "weight"), check_rows(centers, "centers")
    if rows.shape != around.shape:
        raise ValueError(
            f"weight and centers must have one shape, got {tuple(rows.shape)} and "
            f"{tuple(around.shape)}"
        )
    return as_kind_of(0.5 * (rows * around).sum(dim=1), weight)


def weight_norms(weight: Array) -> Array:
    """‖w_k‖ of each class, float64.

    >>> weight_norms([[3.0, 4.0], [0.0, 1.0]]).tolist()
    [5.0, 1.0]
    """
    return as_kind_of(check_rows(weight, "weight").norm(dim=1), weight)


def frequency_correlation(values: ArrayLike, counts: ArrayLike) -> float:
    """Spearman's rank correlation of a number a class with the class counts.

    Classes whose number is NaN are left out. NaN if fewer than two are left or all are alike.

    >>> frequency_correlation([0.1, 0.4, 0.2, float("nan")], [90, 5, 30, 1])
    -1.0
    """
    given = as_tensor(values).detach().to("cpu", torch.float64)
    if given.dim() != 1:
        raise ValueError(f"values must be one number a class, got shape {tuple(given.shape)}")
    sizes = per_class_tensor(counts, len(given), "counts", least="zero")
    known = ~given.isnan()
    if known.sum() < 2:
        return float("nan")
    a, b = (_ranks(each[known]) for each in (given, sizes))
    a, b = a - a.mean(), b - b.mean()
    scale = a.norm() * b.norm()
    return float(a @ b / scale) if scale > 0 else float("nan")


def _ranks(values: Tensor) -> Tensor:
    """Ranks from 0, ties sharing the mean of theirs."""
    order = values.sort().values
    below = torch.searchsorted(order, values)
    until = torch.searchsorted(order, values, right=True)
    return (below + until - 1).double() / 2
