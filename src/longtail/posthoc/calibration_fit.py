r"""How calibrators are fitted: by likelihood on validation samples, and a belief in small changes.

Logits f that carry c are calibrated where labels follow the validation prior q. So T, the scales s
and the biases b are fitted to the samples under their own prior,

    min  mean_i −log softmax(s/T · f_i + b + log q − log c)[y_i]  +  1/2N Σ_θ (θ/spread_θ)²      (1)

over θ = log T, log s and b, and s/T · f + b still carries c. The second term is the belief, worth
as much as a few samples and gone as N grows, that θ is normal around zero: without it the one
sample of a class would set its bias, and a model that makes no error would get T → 0. A class
without samples is ruled out under q, so nothing but the belief speaks for its parameters.

T alone is found by Newton's method, T and the others by L-BFGS; derivatives are written out, and
samples walked in blocks, so that large scores need little memory beyond their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import ArrayLike, Floats
from longtail.core.blocks import PER_CALL, blocks
from longtail.core.measure import NegativeLogLikelihood, class_named
from longtail.core.minimise import UnsettledError, minimise
from longtail.core.numbers import check_weights
from longtail.core.retarget import prior_offset
from longtail.posthoc.tau.criteria import Point, descend, nll_scores
from longtail.posthoc.validation import check_validation

_MAX_ITER = 1000
_INFORMATION = 0.3  # about what a sample of a class tells of its bias: p (1 − p)


@dataclass(frozen=True, eq=False)
class Fit:
    """What was fitted: T, s and b of every class, and what scores carry before and after."""

    temperature: float
    scale: Floats
    bias: Floats
    source: Prior | None
    carried: Prior


def fit_temperature(scores: Scores, spread: float, weights: ArrayLike | None = None) -> float:
    """The T of (1), or an UnsettledError; `spread` is that of log T, `weights` are repetitions."""
    samples = check_validation(scores, "a temperature")
    if samples.carried is None:
        raise UnknownPriorError(
            "a temperature is fitted under the prior of the validation samples, but these scores "
            "carry no known one (a bias-corrected temperature needs none)"
        )
    samples.check_possible()
    times, prior = check_weights(weights, len(samples.labels)), samples.prior
    if weights is not None:
        prior = Prior.of(np.bincount(samples.labels, times, prior.num_classes), zeros="keep")
    offset, total = prior_offset(samples.carried, prior), float(times.sum())
    columns = samples.logits, samples.labels, times

    def mean(log_t: float) -> Point:
        sums = np.zeros(3)
        for logits, labels, counted in blocks(*columns, numbers=PER_CALL):
            moved = logits * np.exp(-log_t)
            finite = np.where(np.isneginf(moved), 0.0, moved)
            with np.errstate(over="ignore", invalid="ignore"):  # it then does not settle
                sums += np.stack(nll_scores(moved + offset, labels, -finite, finite)) @ counted
        belief = np.array([log_t**2 / 2, log_t, 1.0]) / spread**2
        value, slope, bend = (sums + belief) / total
        return float(value), float(slope), float(bend)

    log_t = descend(mean, 0.0, most_steps=_MAX_ITER)
    _check_settled(mean(log_t)[1], "the temperature")
    return float(np.exp(log_t))


def fit_scales(scores: Scores, who: str, bias: float, scale: float = 0.0) -> Fit:
    """The minimum of (1), or an UnsettledError that `who` has none in reach.

    `bias` and `scale` are the spreads of each b and log s, where 0 keeps s at one; that of log T is
    1, or that of b if it is more. If it is not known what the samples carry, log q − log c is left
    to b, and they carry their own prior afterwards.
    """
    samples = check_validation(scores, who)
    absent = np.flatnonzero(np.isneginf(samples.prior.log))
    if samples.carried is None and len(absent):
        first = class_named(int(absent[0]), samples.classes)
        raise ValueError(
            "where it is not known what scores carry, every class must occur in the validation "
            f"labels, {len(absent)} of {samples.prior.num_classes} do not (the first is {first}); "
            "say what the scores carry, or add samples of these classes"
        )
    samples.check_possible()
    num_samples, shares = len(samples.labels), samples.prior.probs
    loss = NegativeLogLikelihood(samples.logits, samples.labels, len(shares))
    reached = samples.prior if samples.carried is None else samples.carried
    offset = prior_offset(reached, samples.prior)
    spread = np.repeat([max(1.0, bias), bias, scale], [1, len(shares), len(shares)])
    share = np.concatenate([[1.0], shares, shares])
    # L-BFGS moves steps: θ = spread · rate · step. The rate makes one of them about as large as the
    # data leave θ free, be they many or few of its class, which spares a long tail most iterations.
    rate = 1 / np.sqrt(_INFORMATION * spread**2 * share + 1 / num_samples)

    def parameters(steps: Floats) -> tuple[float, Floats, Floats]:
        theta = spread * rate * steps
        biases, log_s = np.split(theta[1:], 2)
        return float(theta[0]), biases, log_s

    def objective(steps: Floats) -> tuple[float, Floats]:
        log_t, biases, log_s = parameters(steps)
        scales = np.exp(log_s - log_t)
        value, by_bias, by_scale, _ = loss(biases + offset, scales)
        by_log = by_scale * scales
        slope = spread * rate * np.concatenate([[-by_log.sum()], by_bias, by_log])
        belief = rate * steps
        return value + (belief @ belief) / (2 * num_samples), slope + rate * belief / num_samples

    steps, slope = minimise(objective, np.zeros_like(rate), max_iter=_MAX_ITER, tolerance=1e-8)
    _check_settled(slope, who)
    log_t, biases, log_s = parameters(steps)
    return Fit(float(np.exp(log_t)), np.exp(log_s), biases, samples.carried, reached)


def _check_settled(slope: float, who: str) -> None:
    if not abs(slope) < 1e-5:
        raise UnsettledError(
            f"{who} did not settle in {_MAX_ITER} iterations (the gradient is still "
            f"{abs(slope):.2g}); use a smaller spread, or logits on a smaller scale"
        )
