r"""Features at the door of every measure of them, walked class by class, and their covariances.

How far to shrink a covariance S of n centred samples towards (tr S/p)·I, p the dimension:

    Ledoit-Wolf:  s = min(b, d)/d,   b = (Σ_i ‖x_i‖⁴/n − tr S²)/(p·n),   d = (tr S² − (tr S)²/p)/p
    OAS:          s = min(1, (tr S² /p² + (tr S/p)²) / ((n+1)(tr S² − (tr S)²/p)/p²))

OAS is written as scikit-learn has it, without the terms in 2/p of Chen et al.'s eq. 23.
Ledoit and Wolf 2004; Chen, Wiesel, Eldar and Hero 2010: the estimators of NCM A.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core.arrays import (
    ArrayLike,
    Floats,
    Indices,
    RowsLike,
    as_numpy,
    refuse_lossy,
    to_kind,
)
from longtail.core.blocks import BLOCK, slices
from longtail.core.labels import check_labels, positions_by_class

Estimator: TypeAlias = Literal["empirical", "ledoit_wolf", "oas"]

_ROWS = 2048  # of a block at the most, so that the pairs of two blocks take no more memory


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Features and the places of each class's samples in them."""

    features: Any
    places: list[Indices]

    @property
    def dim(self) -> int:
        """The features' dimension."""
        return int(self.features.shape[1])

    def blocks(self, label: int) -> Iterator[tuple[Indices, Floats]]:
        """Places and rows of one class, in float64, a block at a time."""
        places = self.places[label]
        for part in slices(len(places), max(self.dim, BLOCK // _ROWS)):
            at = to_kind(places[part], self.features)  # torch and JAX index by their own kind
            yield places[part], as_numpy(self.features[at]).astype(np.float64)

    def mean(self, label: int) -> Floats:
        """The mean of one class; NaN without samples."""
        total = sum((rows.sum(axis=0) for _, rows in self.blocks(label)), np.zeros(self.dim))
        return total / (len(self.places[label]) or np.nan)

    def mean_power(self, label: int, power: int) -> float:
        """The mean of ‖Φ − μ_y‖^power."""
        mean = self.mean(label)
        distances = (np.linalg.norm(rows - mean, axis=1) for _, rows in self.blocks(label))
        return sum(float((each**power).sum()) for each in distances) / len(self.places[label])

    def largest_eigenvalue(self, label: int, estimator: Estimator) -> float:
        """Of the covariance of one class."""
        count, dim, mean = len(self.places[label]), self.dim, self.mean(label)
        blocks = (rows - mean for _, rows in self.blocks(label))
        if count < dim:
            centred = np.concatenate(list(blocks))
            gram = centred @ centred.T / count  # has the same eigenvalues, but for zeros
        else:
            gram = np.zeros((dim, dim))
            for rows in blocks:
                gram += rows.T @ rows / count
        largest = float(np.linalg.eigvalsh(gram)[-1])
        if estimator == "empirical":
            return largest
        trace, square = float(gram.trace()), float((gram**2).sum())
        if estimator == "oas":
            amount = oas_shrinkage(trace, square, count, dim)
        else:
            fourth = self.mean_power(label, 4) * count
            amount = ledoit_wolf_shrinkage(trace, square, fourth, count, dim)
        return (1 - amount) * largest + amount * trace / dim


def by_class(features: RowsLike, labels: ArrayLike, num_classes: int) -> ClassRows:
    """The features of each class, or a ValueError."""
    refuse_lossy(features)
    rows: Any = features if hasattr(features, "shape") else as_numpy(features)
    truth = check_labels(labels, num_classes)
    if len(rows.shape) != 2 or len(rows) != len(truth):
        raise ValueError(
            f"features must have shape (N, D) with a row for each of {len(truth)} labels, "
            f"got {tuple(rows.shape)}"
        )
    return ClassRows(rows, positions_by_class(truth, num_classes))


def ledoit_wolf_shrinkage(trace: float, square: float, fourth: float, n: int, p: int) -> float:
    """Ledoit and Wolf's s, from tr S, tr S² and Σ ‖x_i‖⁴."""
    spread = (square - trace**2 / p) / p
    if p == 1 or spread <= 0:
        return 0.0
    noise = (fourth / n - square) / (p * n)
    return min(max(noise, 0.0), spread) / spread


def oas_shrinkage(trace: float, square: float, n: int, p: int) -> float:
    """The oracle approximating s, from tr S and tr S²."""
    if p == 1:
        return 0.0
    spread = (n + 1) * (square - trace**2 / p)
    return 1.0 if spread <= 0 else min((square + trace**2) / spread, 1.0)
