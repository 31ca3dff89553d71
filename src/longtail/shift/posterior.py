r"""The prior of unlabelled samples a posteriori: near a trend, as near as the samples say.

With ℓ_i(y) = p(x_i|y), w_i what sample i counts and n the training counts, the prior t is taken for

    t ~ Dirichlet(s·c),        c_y ∝ n_y^slope,

around a trend that is as in training (slope 1), uniform (slope 0), or goes on from there. The slope
is the likeliest of t = c, and how well it is known adds to the variances. The strength s, the
samples that the trend counts for, is learned. In the coordinates log t the posterior of t for a
strength is ∝ exp of

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
from longtail.core.blocks import IN_CACHE, slices
from longtail.shift.likeliest import solve_free

_SLOPES = np.linspace(-3, 3, 13).tolist()  # of a trend, where it is sought
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


class _Tops(NamedTuple):
    """The likeliest priors of some problems for one ratio of strength and η, and their evidence."""

    ratio: float  # s/η
    log_priors: Floats  # of shape (problems, C)
    fits: Floats  # Σ_i w_i log Σ_y t_y ℓ_i(y), one a problem
    log_determinants: Floats  # of the curvature, for η = 1, one a problem
    variances: Floats  # of log t, for η = 1: (problems, C)
    iterations: int
    converged: bool


class Trend(NamedTuple):
    """The likeliest one."""

    probs: Floats
    slope: float  # 0 if all counts are equal
    variances: Floats  # of log c, from that of the slope


def trend_along(likelihood: Floats, weights: Floats, log_counts: Floats) -> Trend:
    """The likeliest trend, if before any sample slopes are normal around 0, of variance 1."""
    from scipy.optimize import minimize_scalar

    if np.ptp(log_counts) == 0:
        level = np.full(len(log_counts), 1 / len(log_counts))
        return Trend(level, 0.0, np.zeros(len(log_counts)))

    def trend(slope: float) -> Floats:
        return Prior.from_log(slope * log_counts).probs

    def loss(slope: float) -> float:
        return slope**2 / 2 - float(weights @ np.log(likelihood @ trend(slope)))

    best, step = min(_SLOPES, key=loss), _SLOPES[1] - _SLOPES[0]  # it may have several tops
    bounds = (best - step, best + step)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    slope, step = float(found.x), 0.05
    bend = (loss(slope - step) - 2 * loss(slope) + loss(slope + step)) / step**2
    probs = trend(slope)
    return Trend(probs, slope, np.square(log_counts - probs @ log_counts) / max(bend, 1.0))


def posteriors(
    likelihood: Floats, weights: Floats, trends: Floats, counting: tuple[float, ...]
) -> list[list[Posterior]]:
    """The posteriors around trends, of every problem for each η in `counting`.

    Shapes: likelihood (N, C), weights (N, problems), each sample in some, trends (C, problems).
    """
    path = _path(likelihood, weights, trends)
    return [_averaged(path, problem, trend, counting) for problem, trend in enumerate(trends.T)]


def _path(likelihood: Floats, weights: Floats, trends: Floats) -> list[_Tops]:
    """From the strongest trend to the weakest: each starts where the last ended."""
    size = len(trends)
    strongest = _STRONGEST * max(float(weights.sum(axis=0).max()), _STRONGEST * size)
    number = 1 + int(np.ceil(np.log(strongest / (_WEAKEST * size)) / np.log(_FACTOR)))
    path, priors = [], trends
    for ratio in strongest / _FACTOR ** np.arange(number):
        end = solve_free(likelihood, weights, ratio * trends, priors, _GAP)
        priors, settled = end.priors, (end.iterations, end.converged)
        path.append(_tops(likelihood, weights, priors, trends, float(ratio), settled))
    return path


def _tops(
    likelihood: Floats,
    weights: Floats,
    priors: Floats,
    trends: Floats,
    ratio: float,
    settled: tuple[int, bool],
) -> _Tops:
    """The curvature at a top is M − (Σw + r)·ttᵀ + r·diag c, with r = s/η.

    M = Σ_i w_i p_i p_iᵀ are the second moments of p_i(y) = t_y ℓ_i(y) / Σ_k t_k ℓ_i(k), whose first
    ones are (Σw + r)·t − r·c at the top.
    """
    mixed, totals = likelihood @ priors, weights.sum(axis=0)
    fits = np.einsum("ik,ik->k", weights, np.log(mixed))
    scales, size = np.sqrt(weights) / mixed, len(priors)
    if size > _MOST_FOR_MATRICES:
        second = np.square(priors) * (np.square(likelihood).T @ np.square(scales))
        curved = np.maximum(second - (totals + ratio) * np.square(priors), 0.0) + ratio * trends
        determinants, variances = np.log(curved).sum(axis=0), (1 / curved).T
        return _Tops(ratio, np.log(priors.T), fits, determinants, variances, *settled)
    determinants, variances = np.empty(len(totals)), np.empty((len(totals), size))
    for some in slices(len(totals), size * size, IN_CACHE):
        curved = np.empty((some.stop - some.start, size, size))
        for into, problem in zip(curved, range(some.start, some.stop), strict=True):
            there, prior = weights[:, problem] > 0, priors[:, problem]
            scaled = likelihood[there] * scales[there, problem, None] * prior
            np.matmul(scaled.T, scaled, out=into)
            into -= (totals[problem] + ratio) * np.outer(prior, prior)
        curved[:, np.arange(size), np.arange(size)] += ratio * trends.T[some]
        # Along a constant, which changes no prior, it is flat: any curvature serves there.
        curved += totals[some, None, None] / size
        determinants[some], variances[some] = _inverted(curved, priors.T[some])
    return _Tops(ratio, np.log(priors.T), fits, determinants, variances, *settled)


def _inverted(curved: Floats, priors: Floats) -> tuple[Floats, Floats]:
    """Of some curvatures the logarithms of their determinants, and the variances of log t."""
    ridge = 1e-12 * np.trace(curved, axis1=1, axis2=2)
    lower = np.linalg.cholesky(curved + ridge[:, None, None] * np.eye(curved.shape[1]))
    inverse = np.linalg.inv(lower)
    covariance = inverse.transpose(0, 2, 1) @ inverse
    # Of log t less its mean under t, since t sums to one.
    along = (covariance @ priors[..., None])[..., 0]
    own, mean = np.diagonal(covariance, axis1=1, axis2=2), (priors * along).sum(axis=1)
    determinants = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return determinants, own - 2 * along + mean[:, None]


def _averaged(
    path: list[_Tops], problem: int, trend: Floats, counting: tuple[float, ...]
) -> list[Posterior]:
    """The means over strengths, by their evidence, for each η."""
    from scipy.special import gammaln, softmax

    etas, ratios = np.array(counting)[:, None], np.array([tops.ratio for tops in path])
    logs = np.stack([tops.log_priors[problem] for tops in path])
    variances = np.stack([tops.variances[problem] for tops in path])
    strengths = etas * ratios  # of shape (η, strengths), as are heights and chances
    heights = etas * np.array([tops.fits[problem] for tops in path]) + strengths * (logs @ trend)
    heights += gammaln(strengths) - gammaln(strengths[..., None] * trend).sum(axis=-1)
    heights -= 0.5 * np.array([tops.log_determinants[problem] for tops in path])
    heights -= 0.5 * np.log(ratios)  # level in 1/√s
    chances = softmax(heights, axis=1)
    means = np.log(chances @ np.exp(logs))
    means -= np.log(np.exp(means).sum(axis=1, keepdims=True))
    apart = np.square(logs - means[:, None])
    spreads = chances @ variances / etas + np.einsum("er,erc->ec", chances, apart)
    learned = np.exp(chances @ np.log(ratios))
    settled = sum(tops.iterations for tops in path), all(tops.converged for tops in path)
    return [
        Posterior(mean, spread, float(strength), *settled)
        for mean, spread, strength in zip(means, spreads, learned, strict=True)
    ]
