r"""EM for the prior of unlabelled samples (Saerens et al., 2002), with a Dirichlet prior.

With ℓ_i(y) = p(x_i|y), known up to a factor of i from logits that carry the uniform prior, repeat

    E    n_y = Σ_i w_i · t_y ℓ_i(y) / Σ_k t_k ℓ_i(k)
    M    t_y ∝ n_y + a_y                                        every class on its own
    or   t_y ∝ exp(slope · z_y) with Σ_y t_y z_y = Σ_y (n_y + a_y) z_y / Σ_y (n_y + a_y)    a trend

Each round raises Σ_i w_i log Σ_y t_y ℓ_i(y) + Σ_y a_y log t_y, the likelihood of the samples and of
a_y more of class y. Many problems are solved at once, one a column: a round is two products of
matrices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

MAX_ITER = 5000
TOLERANCE = 1e-8
_NEWTON_STEPS = 100
_LEAST = 1e-300  # what underflows would be a zero, which EM never leaves
_LONGEST_STEP = 1.0  # of the slope: Newton's own may leave for infinity where the trend is flat

MStep: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Climb:
    """Where EM stopped.

    Attributes:
        priors: One column a problem, shape (C, problems); each sums to one.
        iterations: How many rounds it took.
        converged: Whether the last round moved no column by more than the tolerance in all.
    """

    priors: Tensor
    iterations: int
    converged: bool


def likelihoods(uniform_logits: Tensor) -> Tensor:
    """ℓ_i(y) over the largest of its row, float64, from logits that carry the uniform prior."""
    rows = uniform_logits.to("cpu", torch.float64)
    return (rows - rows.max(dim=1, keepdim=True).values).exp()


def climb(
    likelihood: Tensor,
    weights: Tensor,
    start: Tensor,
    m_step: MStep,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> Climb:
    """EM from `start` until a round moves nothing by more than the tolerance.

    Args:
        likelihood: Shape (N, C).
        weights: How often each sample counts, shape (N, problems).
        start: Shape (C, problems), without zeros: EM never leaves them.
        m_step: The priors that best explain expected counts, both of shape (C, problems).
        tolerance: On Σ_y |change of t_y|.
        max_iter: Rounds at most.
    """
    priors = start
    for iteration in range(1, max_iter + 1):
        moved = m_step(expected_counts(likelihood, weights, priors)).clamp_min(_LEAST)
        change = float((moved - priors).abs().sum(dim=0).max())
        priors = moved
        if change <= tolerance:
            return Climb(priors, iteration, converged=True)
    return Climb(priors, max_iter, converged=False)


def expected_counts(likelihood: Tensor, weights: Tensor, priors: Tensor) -> Tensor:
    """n_y, how many samples of each class there are if the priors are right."""
    return priors * (likelihood.T @ (weights / (likelihood @ priors)))


def free_step(pseudo_counts: Tensor) -> MStep:
    """Every class on its own, with a_y samples more of class y; shape (C, 1) or (C, problems)."""

    def step(counts: Tensor) -> Tensor:
        smoothed = counts + pseudo_counts
        return smoothed / smoothed.sum(dim=0)

    return step


def trend_step(direction: Tensor, pseudo_counts: Tensor) -> MStep:
    """Priors ∝ exp(slope · z) with z the direction, one number a class, not all the same."""
    centred = (direction - direction.mean())[:, None]

    def step(counts: Tensor) -> Tensor:
        smoothed = counts + pseudo_counts
        wanted = (smoothed * centred).sum(dim=0) / smoothed.sum(dim=0)
        slope = torch.zeros_like(wanted)
        for _ in range(_NEWTON_STEPS):
            priors = torch.softmax(slope * centred, dim=0)
            mean = (priors * centred).sum(dim=0)
            variance = (priors * (centred - mean).square()).sum(dim=0)
            move = ((wanted - mean) / variance).clamp(-_LONGEST_STEP, _LONGEST_STEP)
            slope = slope + move
            if float(move.abs().max()) < 1e-13:
                break
        return torch.softmax(slope * centred, dim=0)

    return step


def slope_of(prior: Tensor, direction: Tensor) -> float:
    """The slope of a prior that is ∝ exp(slope · direction); 0 where the direction is level."""
    top, bottom = int(direction.argmax()), int(direction.argmin())
    if direction[top] == direction[bottom]:
        return 0.0
    return float((prior[top] / prior[bottom]).log() / (direction[top] - direction[bottom]))
