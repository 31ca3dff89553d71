"""What every way of estimating a prior hands back, and how samples are drawn for intervals."""

from dataclasses import dataclass

import torch
from torch import Tensor

from longtail.core import Prior

_LEAST = 1e-9  # of a probability: scores cannot be moved from a prior with zeros


@dataclass(frozen=True, eq=False)
class Found:
    """An estimate.

    Attributes:
        prior: The estimate, without zeros.
        spread: How far the logarithm of each class's probability may be off, as a standard
            deviation; None if that was not asked for.
        iterations: How many it took.
        converged: Whether it settled.
        slope: Of the trend it was shrunk towards, if any.
        trust: How far single classes may leave that trend.
    """

    prior: Prior
    spread: Tensor | None
    iterations: int
    converged: bool
    slope: float | None = None
    trust: float | None = None


def full(probs: Tensor) -> Prior:
    """The prior with these probabilities, none of them below a billionth."""
    return Prior.from_log(probs.clamp_min(_LEAST).log())


def weighted_again(chances: Tensor, labels: Tensor, generator: torch.Generator) -> Tensor:
    """Each row with other weights within the classes, of which each keeps its chance as a whole.

    They are those of the Bayesian bootstrap (Rubin, 1981): other samples of the same classes.
    """
    uniform = torch.rand(chances.shape, dtype=torch.float64, device="cpu", generator=generator)
    weights = chances * -(1 - uniform).log()
    at, shape = labels.expand(chances.shape), (len(chances), int(labels.max()) + 1)
    before, after = (
        torch.zeros(shape, dtype=torch.float64, device="cpu").scatter_add_(1, at, part)
        for part in (chances, weights)
    )
    return weights * (before / after.clamp_min(1e-300)).gather(1, at)


def drawn_again(
    chances: Tensor, num_samples: int, draws: int, generator: torch.Generator
) -> Tensor:
    """How often each sample is among `num_samples` drawn by chance, shape (samples, draws).

    The chances are the same for all draws, or of shape (draws, samples).
    """
    picked = torch.multinomial(
        chances.expand(draws, -1), num_samples, replacement=True, generator=generator
    )
    times = torch.zeros(draws, chances.shape[-1], dtype=torch.float64, device="cpu")
    return times.scatter_add_(1, picked, torch.ones_like(picked, dtype=torch.float64)).T
