r"""Two small problems whose answer is known: two Gaussians and two moons.

Two Gaussians (Menon et al. 2021, section 6.1): x ~ N(±μ, I) with μ = (1, 1), the sign + for class
1, which is rare. The separator "class 1 if w·x + b > 0" has the balanced error

    ½ Φ(-(w·μ + b) / ‖w‖) + ½ Φ((b - w·μ) / ‖w‖),

whatever the prior. It is smallest for w ∝ μ and b = 0: the Bayes balanced error Φ(-√2) = 0.0786.

Two moons (Jitkrittum et al. 2022, section 2.3): two interleaving half circles of radius 1 with
Gaussian noise, the upper one (cos t, sin t) of class 0, the lower one (1 - cos t, ½ - sin t) of
class 1, the tail; t is uniform in [0, π].
"""

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Array, ArrayLike, Indices, as_numpy, to_kind
from longtail.core.draws import Draws
from longtail.core.numbers import check_number, check_whole

# Φ(-√2), by Φ(x) = ½ erfc(-x / √2).
TWO_GAUSSIANS_BAYES_ERROR = 0.5 * math.erfc(1.0)

Samples: TypeAlias = tuple[npt.NDArray[np.float32], Indices]


def two_gaussians(num_samples: int, seed: int, positive: float = 0.05) -> Samples:
    """Features (N, 2) and labels (N,) of the two Gaussians; `positive` is the prior of class 1.

    >>> features, labels = two_gaussians(10_000, seed=0)
    >>> features.shape, np.bincount(labels).tolist()
    ((10000, 2), [9494, 506])
    """
    draws = Draws(seed)
    labels = _rare_labels(num_samples, positive, "positive", draws)
    noise = draws.normal32(2 * num_samples).reshape(-1, 2)
    return noise + (2 * labels - 1)[:, None].astype(np.float32), labels


def two_gaussians_error(weight: ArrayLike, bias: ArrayLike | float) -> Array:
    """The exact balanced error of one or many separators that predict class 1 if w·x + b > 0.

    A weight (..., 2) of zero predicts the same class everywhere, so its error is one half.

    >>> two_gaussians_error([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [0.0, 0.5, -1.0]).round(4)
    array([0.0786, 0.1877, 0.5   ])
    """
    from scipy.special import ndtr

    normal = as_numpy(weight).astype(np.float64)
    if normal.ndim < 1 or normal.shape[-1] != 2:
        raise ValueError(
            f"weight must have shape (..., 2), two numbers a separator, got {normal.shape}"
        )
    shift = bias if isinstance(bias, float | int) else as_numpy(bias).astype(np.float64)
    length = np.sqrt((normal**2).sum(axis=-1))
    # Any length does for a weight of zero: Φ(-b) and Φ(b) average to one half.
    length = np.where(length > 0, length, 1.0)
    along = normal.sum(axis=-1)
    missed, false_alarms = ndtr(-(along + shift) / length), ndtr((shift - along) / length)
    error: Array = to_kind(np.asarray((missed + false_alarms) / 2), weight)
    return error


def two_moons(num_samples: int, seed: int, tail: float = 0.05, noise: float = 0.1) -> Samples:
    """Features (N, 2) and labels (N,) of the two moons; `tail` is the prior of class 1.

    The noise is a standard deviation, in each coordinate.

    >>> features, labels = two_moons(10_000, seed=0)
    >>> features.shape, np.bincount(labels).tolist()
    ((10000, 2), [9494, 506])
    """
    check_number(noise, "noise", least=0)
    draws = Draws(seed)
    labels = _rare_labels(num_samples, tail, "tail", draws)
    angle = np.float32(math.pi) * draws.uniform32(num_samples)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.array([1.0, 0.5], dtype=np.float32) - upper
    moons = np.where(labels[:, None] == 1, lower, upper)
    return moons + np.float32(noise) * draws.normal32(moons.size).reshape(moons.shape), labels


def _rare_labels(num_samples: int, probability: float, name: str, draws: Draws) -> Indices:
    check_whole(num_samples, "num_samples", least=1)
    if not 0 < probability < 1:
        raise ValueError(
            f"{name} must be the probability of class 1, between 0 and 1, got {probability}; "
            "5 % is written 0.05"
        )
    return (draws.uniform(num_samples) < probability).astype(np.int64)
