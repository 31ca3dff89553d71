r"""How many samples each class keeps, for class 0 (most) to class C - 1 (fewest).

With L the largest count, ρ ≥ 1 the imbalance ratio and α the Pareto power, always rounded down:

    exponential   n_i = L · ρ^(-i / (C - 1))                       Cui et al. 2019
    step          n_i = L for i < C // 2, then L / ρ               Buda et al. 2018
    Pareto        n_i = L/ρ + (L - L/ρ) · (q_i - 1) / (q_0 - 1)    after Liu et al. 2019
                  where q_i = ((i + 1) / C)^(-1/α)

q_i are the values that a Pareto variable with scale 1 exceeds with probability (i + 1) / C; they
are stretched so that the first class has L samples and the last L/ρ.
"""

import math

import numpy as np

from longtail.core.arrays import Floats, Indices
from longtail.core.numbers import check_number, check_whole


def exponential_counts(largest: float, num_classes: int, imbalance_ratio: float) -> Indices:
    """Counts that fall by the same factor from class to class: the EXP profile of CIFAR-LT.

    The imbalance ratio is the first count, `largest`, over the last: at least 1.

    >>> exponential_counts(5000, num_classes=10, imbalance_ratio=100).tolist()
    [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    """
    _check(largest, num_classes, imbalance_ratio)
    sizes = largest * exponential_shares(num_classes, imbalance_ratio)
    return _whole(sizes, largest, num_classes, imbalance_ratio)


def step_counts(largest: float, num_classes: int, imbalance_ratio: float) -> Indices:
    """Counts of two sizes: the first half of the classes is large, the rest small.

    With an odd number of classes the middle one is small. A single class is large.

    >>> step_counts(5000, num_classes=5, imbalance_ratio=100).tolist()
    [5000, 5000, 50, 50, 50]
    """
    _check(largest, num_classes, imbalance_ratio)
    is_large = np.arange(num_classes) < max(num_classes // 2, 1)
    sizes = np.where(is_large, largest, largest / imbalance_ratio)
    return _whole(sizes, largest, num_classes, imbalance_ratio)


def pareto_counts(
    largest: float, num_classes: int, imbalance_ratio: float, alpha: float = 6.0
) -> Indices:
    """Counts like those of ImageNet-LT: a steep head and a long, slowly falling tail.

    ImageNet-LT itself is one random draw: 115,846 images, 385 classes above 100 and 136 below 20.
    Its extremes, 1280 and 5 over 1000 classes, give 121,449 images, 404 classes and 140 here. The
    smaller the Pareto power `alpha`, the steeper.

    >>> counts = pareto_counts(1280, num_classes=1000, imbalance_ratio=256)
    >>> counts[[0, 10, 100, 500, 999]].tolist(), int(counts.sum())
    ([1280, 665, 279, 76, 5], 121449)
    """
    _check(largest, num_classes, imbalance_ratio)
    if not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha must be a positive number, got {alpha}; ImageNet-LT has 6")
    smallest = largest / imbalance_ratio
    sizes = smallest + (largest - smallest) * _pareto_heights(num_classes, alpha)
    return _whole(sizes, largest, num_classes, imbalance_ratio)


def exponential_shares(num_classes: int, imbalance_ratio: float) -> Floats:
    """The exponential profile relative to its largest class, not rounded."""
    return np.power(1 / imbalance_ratio, np.arange(num_classes) / max(num_classes - 1, 1))


def check_imbalance_ratio(imbalance_ratio: float) -> None:
    """A ValueError unless the ratio is a number of at least 1."""
    if not (math.isfinite(imbalance_ratio) and imbalance_ratio >= 1):
        inverse = 0 < imbalance_ratio < 1
        raise ValueError(
            "an imbalance ratio is the largest class over the smallest, a number of at least 1, "
            f"got {imbalance_ratio}"
            + (f"; {imbalance_ratio} is written {1 / imbalance_ratio:g} here" if inverse else "")
        )


def _pareto_heights(num_classes: int, alpha: float) -> Floats:
    """(q_i - 1) / (q_0 - 1), from 1 down to 0."""
    if num_classes == 1:
        return np.ones(1)
    log_q = -np.log(np.arange(1, num_classes + 1) / num_classes) / alpha
    # q_i itself overflows when alpha is small; q_i / q_0 does not.
    heights: Floats = np.exp(log_q - log_q[0]) * np.expm1(-log_q)
    heights /= heights[0]
    return heights


def _check(largest: float, num_classes: int, imbalance_ratio: float) -> None:
    check_number(largest, "largest", least=1)
    check_whole(num_classes, "num_classes", least=1)
    check_imbalance_ratio(imbalance_ratio)


def _whole(sizes: Floats, largest: float, num_classes: int, imbalance_ratio: float) -> Indices:
    # Floating point puts 4980 / 996 just below 5: what is whole but for rounding stays whole.
    counts = np.floor(sizes * (1 + 1e-12))
    if not (counts >= 1).all():
        raise ValueError(
            f"every class must keep a sample, but {largest=}, {num_classes=}, {imbalance_ratio=} "
            f"leave the smallest with {sizes.min():.3g}, rounded down to none; raise largest or "
            "lower the imbalance ratio"
        )
    return counts.astype(np.int64)
