r"""How far the features of a class lie apart.

    Σ_y = (1/n_y) Σ_{i: y_i=y} (Φ_i − μ_y)(Φ_i − μ_y)ᵀ,        σ_y = max_k |Δ_k|       (NCM eq. 1)

with Σ_y = Q Δ Qᵀ: the intra-class variance, that of the widest direction, which falls with the
class's frequency (NCM fig. 2). NCM A.2 tries shrunk estimates of Σ_y as well. The largest
intra-class distance of a sample is max ‖Φ − Φ⁺‖ over its class, over the largest ‖Φ‖ of all samples
(ELM fig. 4).
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import as_kind_of
from longtail.metrics.representation_classes import ClassRows, by_class
from longtail.metrics.representation_covariance import ledoit_wolf_shrinkage, oas_shrinkage

Measure: TypeAlias = Literal["largest_eigenvalue", "trace", "mean_distance"]
Estimator: TypeAlias = Literal["empirical", "ledoit_wolf", "oas"]


def intra_class_variance(
    features: Array,
    labels: ArrayLike,
    num_classes: int,
    measure: Measure = "largest_eigenvalue",
    estimator: Estimator = "empirical",
) -> Array:
    """The spread of each class about its mean; NaN for a class of fewer than two samples.

    Args:
        features: Shape (N, D). A memory-mapped array is read a class at a time.
        labels: Class indices, shape (N,).
        num_classes: How many classes there are.
        measure: "largest_eigenvalue" of the covariance as in the paper, its "trace" (the mean
            squared distance to the mean, the Var of CDNV), or the "mean_distance" itself.
        estimator: Of the covariance: as it is, or shrunk, which changes its eigenvalues only.

    Returns:
        Shape (C,), float64, on the CPU.

    >>> features = [[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -1.0], [9.0, 9.0]]
    >>> intra_class_variance(features, [0, 0, 0, 0, 1], num_classes=2).tolist()
    [2.0, nan]
    >>> intra_class_variance(features, [0, 0, 0, 0, 1], num_classes=2, measure="trace").tolist()
    [2.5, nan]
    """
    if estimator not in ("empirical", "ledoit_wolf", "oas"):
        raise ValueError(
            f'estimator must be "empirical", "ledoit_wolf" or "oas", got {estimator!r}'
        )
    measures: dict[str, Callable[[ClassRows, int], float]] = {
        "largest_eigenvalue": lambda rows, label: _largest_eigenvalue(rows, label, estimator),
        "trace": lambda rows, label: _mean_power(rows, label, 2),
        "mean_distance": lambda rows, label: _mean_power(rows, label, 1),
    }
    if measure not in measures:
        raise ValueError(f"measure must be one of {', '.join(measures)}, got {measure!r}")
    if measure == "mean_distance" and estimator != "empirical":
        raise ValueError("the mean distance is not made of a covariance; leave out the estimator")
    rows = by_class(features, labels, num_classes)
    spread = [
        measures[measure](rows, label) if len(places) > 1 else torch.nan
        for label, places in enumerate(rows.places)
    ]
    return as_kind_of(torch.tensor(spread, dtype=torch.float64, device="cpu"), features)


def largest_intra_class_distances(
    features: Array, labels: ArrayLike, num_classes: int, normalised: bool = True
) -> Array:
    """For each sample the distance to the farthest one of its class (ELM fig. 4).

    Args:
        features: Shape (N, D).
        labels: Class indices, shape (N,).
        num_classes: How many classes there are.
        normalised: Whether to divide by the largest norm of all features.

    Returns:
        Shape (N,), float64, on the CPU; NaN for a sample that is alone in its class.

    >>> features = [[0.0, 0.0], [3.0, 4.0], [0.0, 10.0]]
    >>> largest_intra_class_distances(features, [0, 0, 1], num_classes=2).tolist()
    [0.5, 0.5, nan]
    """
    rows = by_class(features, labels, num_classes)
    number = sum(map(len, rows.places))
    farthest = torch.full((number,), torch.nan, dtype=torch.float64, device="cpu")
    norm = 0.0
    for label, places in enumerate(rows.places):
        mean = rows.mean(label)
        for at, block in rows.blocks(label):
            norm = max(norm, float(block.norm(dim=1).max()))
            if len(places) > 1:
                farthest[at] = _farthest(block - mean, rows, label, mean)
    return as_kind_of(farthest / norm if normalised else farthest, features)


def _farthest(block: Tensor, rows: ClassRows, label: int, mean: Tensor) -> Tensor:
    # About the class mean a matrix product costs no digits that the largest distance would need.
    others = (other - mean for _, other in rows.blocks(label))
    each = [torch.cdist(block, other).amax(dim=1) for other in others]
    return torch.stack(each).amax(dim=0)


def _mean_power(rows: ClassRows, label: int, power: int) -> float:
    """The mean of ‖Φ − μ_y‖^power."""
    mean = rows.mean(label)
    total = sum(float((b - mean).norm(dim=1).pow(power).sum()) for _, b in rows.blocks(label))
    return total / len(rows.places[label])


def _largest_eigenvalue(rows: ClassRows, label: int, estimator: Estimator) -> float:
    count, dim, mean = len(rows.places[label]), rows.dim, rows.mean(label)
    blocks = (block - mean for _, block in rows.blocks(label))
    if count < dim:
        centred = torch.cat(list(blocks))
        gram = centred @ centred.T / count  # has the same eigenvalues, but for zeros
    else:
        gram = torch.zeros(dim, dim, dtype=torch.float64, device="cpu")
        for block in blocks:
            gram += block.T @ block / count
    largest = float(torch.linalg.eigvalsh(gram)[-1])
    if estimator == "empirical":
        return largest
    trace, square = float(gram.trace()), float(gram.square().sum())
    if estimator == "oas":
        amount = oas_shrinkage(trace, square, count, dim)
    else:
        fourth = _mean_power(rows, label, 4) * count
        amount = ledoit_wolf_shrinkage(trace, square, fourth, count, dim)
    return (1 - amount) * largest + amount * trace / dim
