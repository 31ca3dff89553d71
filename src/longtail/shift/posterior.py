r"""The prior of unlabelled samples a posteriori: near a trend, as near as the samples say.

With ℓ_i(y) = p(x_i|y), w_i what sample i counts and n the training counts, the prior t is taken for

    t ~ Dirichlet(s·c),        c_y ∝ n_y^slope,

around a trend that is as in training (slope 1), uniform (slope 0), or goes on from there. The slope
is the likeliest of t = c. The strength s, the samples that the trend counts for, is learned. In the
coordinates log t the posterior of t for a strength is ∝ exp of

    η · Σ_i w_i log Σ_y t_y ℓ_i(y)  +  s · Σ_y c_y log t_y  +  log Γ(s) − Σ_y log Γ(s·c_y),

and the evidence of the strength its integral, by Laplace's method: with the height of its top and
its curvature there. Strengths have a prior that is level in 1/√s, which is about how far log t is
from the trend. The estimate is the mean of the tops by the evidence of their strengths, and the
variance of log t that within and between strengths.

η ≤ 1 is what a sample counts as evidence. A model that is wrong about a class is wrong about it in
all its samples alike, and more of them are no more evidence (`shift.simulated` finds η). The top
depends on s/η alone: so one path of tops, from strong to weak, serves every η.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core import Prior
from longtail.core.arrays import Floats
from longtail.shift.likeliest import solve_free

_STEEPEST = 3.0  # slope of a trend, either way
_WEAKEST = 0.1  # strength, in samples a class
_STRONGEST = 100.0  # in samples to estimate from: beyond it no class leaves the trend
_FACTOR = 10**0.5  # from one strength to the next
_GAP = 1e-6
_MOST_FOR_MATRICES = 1000  # classes: beyond it a curvature is taken for its diagonal


class Posterior(NamedTuple):
    """What is known of the prior of samples."""

    log_prior: Floats
    variances: Floats  # of its numbers
    strength: float  # how many samples the trend counts for, beside those to estimate from
    iterations: int
    converged: bool


class _Top(NamedTuple):
    """The likeliest prior for a ratio of strength and η, and what the evidence needs."""

    ratio: float  # s/η
    log_prior: Floats
    fit: float  # Σ_i w_i log Σ_y t_y ℓ_i(y)
    log_determinant: float  # of the curvature, for η = 1
    variances: Floats  # of log t, for η = 1
    iterations: int
    converged: bool


def trend_along(likelihood: Floats, weights: Floats, log_counts: Floats) -> tuple[Floats, float]:
    """The likeliest trend, and its slope; uniform if all counts are equal."""
    from scipy.optimize import minimize_scalar

    if np.ptp(log_counts) == 0:
        return np.full(len(log_counts), 1 / len(log_counts)), 0.0

    def trend(slope: float) -> Floats:
        return Prior.from_log(slope * log_counts).probs

    found = minimize_scalar(
        lambda slope: -float(weights @ np.log(likelihood @ trend(slope))),
        bounds=(-_STEEPEST, _STEEPEST),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return trend(float(found.x)), float(found.x)


def posteriors(
    likelihood: Floats, weights: Floats, trends: Floats, counting: tuple[float, ...]
) -> list[list[Posterior]]:
    """The posteriors around trends, of every problem for each η in `counting`.

    Shapes: likelihood (N, C), weights (N, problems), each sample in some, trends (C, problems).
    """
    paths = _tops(likelihood, weights, trends)
    return [
        [_averaged(path, trend, eta) for eta in counting]
        for path, trend in zip(paths, trends.T, strict=True)
    ]


def _tops(likelihood: Floats, weights: Floats, trends: Floats) -> list[list[_Top]]:
    """From the strongest trend to the weakest: each starts where the last ended."""
    size, problems = trends.shape
    strongest = _STRONGEST * max(float(weights.sum(axis=0).max()), _STRONGEST * size)
    number = 1 + int(np.ceil(np.log(strongest / (_WEAKEST * size)) / np.log(_FACTOR)))
    paths: list[list[_Top]] = [[] for _ in range(problems)]
    priors = trends
    for ratio in strongest / _FACTOR ** np.arange(number):
        end = solve_free(likelihood, weights, ratio * trends, priors, _GAP)
        priors, settled = end.priors, (end.iterations, end.converged)
        for k, path in enumerate(paths):
            there = weights[:, k] > 0
            own = likelihood[there], weights[there, k], priors[:, k], trends[:, k]
            path.append(_top(*own, float(ratio), settled))
    return paths


def _top(
    likelihood: Floats,
    weights: Floats,
    prior: Floats,
    trend: Floats,
    ratio: float,
    settled: tuple[int, bool],
) -> _Top:
    """The curvature there is M − (Σw + r)·ttᵀ + r·diag c, with r = s/η.

    M = Σ_i w_i p_i p_iᵀ are the second moments of p_i(y) = t_y ℓ_i(y) / Σ_k t_k ℓ_i(k), whose first
    ones are (Σw + r)·t − r·c at the top.
    """
    mixed, size = likelihood @ prior, len(prior)
    fit, total = float(weights @ np.log(mixed)), float(weights.sum())
    scaled = likelihood * (np.sqrt(weights) / mixed)[:, None]
    if size > _MOST_FOR_MATRICES:
        second = np.square(prior) * np.einsum("ij,ij->j", scaled, scaled)
        curved = np.maximum(second - (total + ratio) * np.square(prior), 0.0) + ratio * trend
        return _Top(ratio, np.log(prior), fit, float(np.log(curved).sum()), 1 / curved, *settled)
    scaled *= prior
    curved = scaled.T @ scaled - (total + ratio) * np.outer(prior, prior)
    curved[np.diag_indices(size)] += ratio * trend
    # Along a constant, which changes no prior, it is flat: any curvature serves there.
    curved += total / size
    lower = np.linalg.cholesky(curved + 1e-12 * np.trace(curved) * np.eye(size))
    inverse = np.linalg.inv(lower)
    covariance = inverse.T @ inverse
    # Of log t less its mean under t, since t sums to one.
    along = covariance @ prior
    variances = np.diagonal(covariance) - 2 * along + prior @ along
    log_determinant = 2 * float(np.log(np.diagonal(lower)).sum())
    return _Top(ratio, np.log(prior), fit, log_determinant, variances, *settled)


def _averaged(path: list[_Top], trend: Floats, eta: float) -> Posterior:
    """The mean over strengths, by their evidence."""
    from scipy.special import gammaln, softmax

    ratios = np.array([top.ratio for top in path])
    logs, variances = (
        np.stack(values)
        for values in zip(*((top.log_prior, top.variances) for top in path), strict=True)
    )
    strengths = eta * ratios
    height = eta * np.array([top.fit for top in path]) + strengths * (logs @ trend)
    height += gammaln(strengths) - gammaln(strengths[:, None] * trend).sum(axis=1)
    height -= 0.5 * np.array([top.log_determinant for top in path])
    height -= 0.5 * np.log(ratios)  # level in 1/√s
    chances = softmax(height)
    mean = np.log(chances @ np.exp(logs))
    mean -= np.log(np.exp(mean).sum())
    spread = chances @ (variances / eta + np.square(logs - mean))
    strength = float(np.exp(chances @ np.log(ratios)))
    settled = sum(top.iterations for top in path), all(top.converged for top in path)
    return Posterior(mean, spread, strength, *settled)
