r"""Two small problems whose answer is known: two Gaussians and two moons.

Two Gaussians (Menon et al. 2021, section 6.1): x ~ N(±μ, I) with μ = (1, 1), the sign + for class
1, which is rare. The separator "class 1 if w·x + b > 0" has the balanced error

    ½ Φ(-(w·μ + b) / ‖w‖) + ½ Φ((b - w·μ) / ‖w‖),

whatever the prior. It is smallest for w ∝ μ and b = 0: the Bayes balanced error Φ(-√2) = 0.0786.

Two moons (Jitkrittum et al. 2022, section 2.3): two interleaving half circles of radius 1 with
Gaussian noise, the upper one (cos t, sin t) of class 0, the lower one (1 - cos t, ½ - sin t) of
class 1, the tail; t is uniform in [0, π].

Features are float32, as torch's layers are. A seed has its own generator: torch's global one is
neither read nor moved.
"""

import math

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.numbers import check_whole
from longtail.core.tensors import as_kind_of, as_tensor

# Φ(-√2), by Φ(x) = ½ erfc(-x / √2).
TWO_GAUSSIANS_BAYES_ERROR = 0.5 * math.erfc(1.0)


def two_gaussians(num_samples: int, seed: int, positive: float = 0.05) -> tuple[Tensor, Tensor]:
    """Features (N, 2) and labels (N,) of the two Gaussians.

    Args:
        num_samples: How many samples.
        seed: Of the labels and the noise.
        positive: The probability of class 1.

    >>> features, labels = two_gaussians(10_000, seed=0)
    >>> tuple(features.shape), labels.bincount().tolist()
    ((10000, 2), [9494, 506])
    """
    generator = torch.Generator().manual_seed(check_whole(seed, "seed"))
    labels = _rare_labels(num_samples, positive, "positive", generator)
    noise = torch.randn(num_samples, 2, generator=generator, dtype=torch.float32)
    return noise + (2 * labels - 1)[:, None], labels


def two_gaussians_error(weight: ArrayLike, bias: ArrayLike | float) -> Array:
    """The exact balanced error of linear separators that predict class 1 if w·x + b > 0.

    A weight of zero predicts the same class everywhere, so its error is one half.

    Args:
        weight: Shape (..., 2): one separator or many.
        bias: Shape (...).

    Returns:
        Float64, shape (...), of the kind of `weight`.

    >>> two_gaussians_error([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], [0.0, 0.5, -1.0])
    tensor([0.0786, 0.1877, 0.5000], dtype=torch.float64)
    """
    normal = as_tensor(weight).double()
    if normal.dim() < 1 or normal.shape[-1] != 2:
        raise ValueError(
            f"weight must have shape (..., 2), two numbers a separator, got {tuple(normal.shape)}"
        )
    shift = torch.tensor(bias) if isinstance(bias, float | int) else as_tensor(bias)
    shift = shift.to(normal)
    length = torch.linalg.vector_norm(normal, dim=-1)
    # Any length does for a weight of zero: Φ(-b) and Φ(b) average to one half.
    length = torch.where(length > 0, length, 1.0)
    along = normal.sum(dim=-1)
    missed = torch.special.ndtr(-(along + shift) / length)
    false_alarms = torch.special.ndtr((shift - along) / length)
    return as_kind_of((missed + false_alarms) / 2, weight)


def two_moons(
    num_samples: int, seed: int, tail: float = 0.05, noise: float = 0.1
) -> tuple[Tensor, Tensor]:
    """Features (N, 2) and labels (N,) of the two moons.

    Args:
        num_samples: How many samples.
        seed: Of the labels, the places on the moons and the noise.
        tail: The probability of class 1.
        noise: Standard deviation of the noise in each coordinate.

    >>> features, labels = two_moons(10_000, seed=0)
    >>> tuple(features.shape), labels.bincount().tolist()
    ((10000, 2), [9494, 506])
    """
    if not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be a standard deviation, zero or more, got {noise}")
    generator = torch.Generator().manual_seed(check_whole(seed, "seed"))
    labels = _rare_labels(num_samples, tail, "tail", generator)
    angle = math.pi * torch.rand(num_samples, generator=generator, dtype=torch.float32)
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.tensor([1.0, 0.5]) - upper
    moons = torch.where(labels[:, None] == 1, lower, upper)
    return moons + noise * torch.randn(
        moons.shape, generator=generator, dtype=torch.float32
    ), labels


def _rare_labels(
    num_samples: int, probability: float, name: str, generator: torch.Generator
) -> Tensor:
    if num_samples < 1:
        raise ValueError(f"num_samples must be at least 1, got {num_samples}")
    if not 0 < probability < 1:
        raise ValueError(
            f"{name} must be the probability of class 1, between 0 and 1, got {probability}; "
            "5 % is written 0.05"
        )
    return (torch.rand(num_samples, generator=generator, dtype=torch.float64) < probability).long()
