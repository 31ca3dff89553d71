r"""EM without anything to check it by: a Dirichlet prior with the uniform one for its mode.

    max_t  Σ_i log Σ_y t_y ℓ_i(y) + a Σ_y log t_y,        a pseudo-samples of each class

Right where the model is calibrated. The interval is that of the bootstrap: what drawing other
samples would change, and not what a miscalibrated model gets wrong.
"""

import torch
from torch import Tensor

from longtail.shift.em import climb, free_step, likelihoods
from longtail.shift.found import Found, drawn_again, full


def plain_em(
    logits: Tensor, pseudo_count: float, resamples: int, generator: torch.Generator
) -> Found:
    """EM's estimate from logits of shape (N, C) that carry the uniform prior."""
    likelihood = likelihoods(logits)
    num_samples, num_classes = likelihood.shape
    step = free_step(torch.tensor(pseudo_count, dtype=torch.float64, device="cpu"))
    once = torch.ones(num_samples, 1, dtype=torch.float64, device="cpu")
    start = torch.full((num_classes, 1), 1 / num_classes, dtype=torch.float64, device="cpu")
    end = climb(likelihood, once, start, step)
    spread = None
    if resamples:
        weights = drawn_again(once[:, 0], num_samples, resamples, generator)
        again = climb(likelihood, weights, end.priors.expand(-1, resamples), step, tolerance=1e-6)
        spread = again.priors.log().std(dim=1)
    return Found(full(end.priors[:, 0]), spread, end.iterations, end.converged)
