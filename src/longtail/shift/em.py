r"""EM for the prior of unlabelled samples (Saerens et al., 2002), with a Dirichlet prior.

With ℓ_i(y) = p(x_i|y), known up to a factor of i from logits that carry the uniform prior, repeat

    E    n_y = Σ_i w_i · t_y ℓ_i(y) / Σ_k t_k ℓ_i(k)
    M    t_y ∝ n_y + a_y                                        every class on its own
    or   t_y ∝ exp(slope · z_y) with Σ_y t_y z_y = Σ_y (n_y + a_y) z_y / Σ_y (n_y + a_y)    a trend

Each round raises Σ_i w_i log Σ_y t_y ℓ_i(y) + Σ_y a_y log t_y, the likelihood of the samples and of
a_y more of class y. Many problems are solved at once, one a column: a round is two products of
matrices. Every class on its own, `likeliest` gets to where EM ends in far fewer steps; on a stream
it goes on from where it ended before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import Floats, Numbers, as_numpy
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.draws import Draws
from longtail.core.numbers import check_number, check_whole
from longtail.core.retarget import retarget
from longtail.core.softmax import softmax
from longtail.shift.likeliest import Climb as Climb
from longtail.shift.likeliest import solve_free as solve_free

TOLERANCE = 1e-8
_DRAW_GAP = 1e-6
_MAX_ITER = 5000
_LOWEST = -69.0  # a logit below the highest: nothing beside it, and its square is no underflow
_LEAST_PROB = 1e-9  # scores cannot be moved from a prior with zeros
_NEWTON_STEPS = 100
_LEAST = 1e-300  # what underflows would be a zero, which EM never leaves
_ENOUGH = 30  # samples for an interval without a prior
_LONGEST_STEP = 1.0  # of the slope: Newton's own may leave for infinity where the trend is flat

MStep: TypeAlias = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class RawEstimate:
    """What every way of estimating a prior hands back."""

    prior: Prior  # without zeros
    spread: Floats | None  # standard deviations of log-probabilities, if asked for
    iterations: int
    converged: bool
    slope: float | None = None  # of the trend it was shrunk towards, if any
    trust: float | None = None  # how far single classes may leave that trend


def full(probs: Floats) -> Prior:
    """The prior with these probabilities, none of them below a billionth."""
    return Prior.from_log(np.log(np.maximum(probs, _LEAST_PROB)))


def drawn_again(random: Draws, chances: Floats, num_samples: int, draws: int) -> Floats:
    """How often each sample is among `num_samples` drawn by chance, shape (samples, draws).

    The chances are the same for all draws, or of shape (draws, samples).
    """
    times = np.empty((chances.shape[-1], draws))
    for k, chance in enumerate(np.broadcast_to(chances, (draws, chances.shape[-1]))):
        limits = chance.cumsum()
        limits /= limits[-1]
        picked = np.searchsorted(limits[:-1], random.uniform(num_samples))
        times[:, k] = np.bincount(picked, minlength=len(chance))
    return times


def plain_em(logits: Numbers, pseudo_count: float, resamples: int, random: Draws) -> RawEstimate:
    """EM's estimate from logits of shape (N, C) that carry the uniform prior.

    There is nothing to check it by. It is right where the model is calibrated, and its interval
    says what other samples would change, and not what the model gets wrong.

    The interval is that of the Bayesian bootstrap (Rubin 1981): samples count as much as chance
    says, exponential, and the a samples more of a class Gamma(a). Where the classes are told apart
    these are draws of the Dirichlet posterior, and where nothing is, of the Dirichlet prior.
    Without a prior a few samples say nothing of those that did not come: there is no interval.
    """
    likelihood, (num_samples, num_classes) = likelihoods(logits), logits.shape
    once, uniform = np.ones((num_samples, 1)), np.full((num_classes, 1), 1 / num_classes)
    end = solve_free(likelihood, once, np.float64(pseudo_count), uniform)
    spread = None
    if resamples and (pseudo_count > 0 or num_samples >= _ENOUGH):
        weights = np.empty((num_samples, resamples))
        for k in range(resamples):
            weights[:, k] = -np.log1p(-random.uniform(num_samples))
        chances = random.uniform(num_classes * resamples).reshape(num_classes, resamples)
        start = np.repeat(end.priors, resamples, axis=1)
        again = solve_free(likelihood, weights, _gamma(pseudo_count, chances), start, _DRAW_GAP)
        spread = np.log(np.maximum(again.priors, _LEAST_PROB)).std(axis=1, ddof=1)
    return RawEstimate(full(end.priors[:, 0]), spread, end.iterations, end.converged)


def _gamma(shape: float, chances: Floats) -> Floats:
    """Numbers of the gamma distribution of that shape, by their chances."""
    from scipy.special import gammaincinv

    return np.asarray(gammaincinv(shape, chances)) if shape else np.zeros_like(chances)


def likelihoods(uniform_logits: Numbers) -> Floats:
    """ℓ_i(y) over the largest of its row, from logits that carry the uniform prior; none is 0."""
    rows = uniform_logits.astype(np.float64)
    for part in slices(len(rows), rows.shape[1], IN_CACHE):
        block = rows[part]
        block -= block.max(axis=1, keepdims=True)
        np.exp(np.maximum(block, _LOWEST, out=block), out=block)
    return rows


def climb(
    likelihood: Floats, weights: Floats, start: Floats, m_step: MStep, tolerance: float = TOLERANCE
) -> Climb:
    """EM from `start` until a round moves no prior by more than the tolerance, Σ_y |change of t_y|.

    Shapes: likelihood (N, C), weights (N, problems), start (C, problems), without zeros, which EM
    never leaves. `m_step` gives the priors that best explain expected counts.
    """
    priors = start
    for iteration in range(1, _MAX_ITER + 1):
        counts = priors * (likelihood.T @ (weights / (likelihood @ priors)))
        moved = np.maximum(m_step(counts), _LEAST)
        change = np.abs(moved - priors).sum(axis=0).max()
        priors = moved
        if change <= tolerance:
            return Climb(priors, iteration, converged=True)
    return Climb(priors, _MAX_ITER, converged=False)


def free_step(pseudo_counts: Floats | np.float64) -> MStep:
    """Every class on its own, with a_y samples more of class y; of any shape that broadcasts."""

    def step(counts: Floats) -> Floats:
        smoothed = counts + pseudo_counts
        return np.asarray(smoothed / smoothed.sum(axis=0))

    return step


def trend_step(direction: Floats, pseudo_counts: Floats | np.float64) -> MStep:
    """Priors ∝ exp(slope · z) with z the direction, one number a class, not all the same."""
    centred = (direction - direction.mean())[:, None]

    def step(counts: Floats) -> Floats:
        smoothed = counts + pseudo_counts
        wanted = (smoothed * centred).sum(axis=0) / smoothed.sum(axis=0)
        slope = np.zeros_like(wanted)
        for _ in range(_NEWTON_STEPS):
            priors = softmax(slope * centred, axis=0)
            mean = (priors * centred).sum(axis=0)
            variance = (priors * np.square(centred - mean)).sum(axis=0)
            move = np.clip((wanted - mean) / variance, -_LONGEST_STEP, _LONGEST_STEP)
            slope = slope + move
            if np.abs(move).max() < 1e-13:
                break
        return softmax(slope * centred, axis=0)

    return step


def slope_of(prior: Floats, direction: Floats) -> float:
    """The slope of a prior that is ∝ exp(slope · direction); 0 where the direction is level."""
    ends = [direction.argmin(), direction.argmax()]
    run, rise = np.ptp(direction), np.diff(np.log(prior[ends]))[0]
    return float(rise / run) if run else 0.0


class StreamingPrior:
    """Watches scores go by and knows the prior of the last `window` samples.

    `prior` is that of `estimate_prior` on the window, without validation scores, up to the
    tolerance of EM, and uniform before the first update; old samples leave it, and it follows a
    prior that changes. Calibrate the scores before, if there are validation scores to fit on.

    >>> stream = StreamingPrior(num_classes=2)
    >>> for _ in range(3):
    ...     batch = Scores([[3.0, 0.0], [0.0, 3.0], [0.0, 3.0]] * 20, carried=[1, 1])
    ...     prior = stream.update(batch)
    >>> prior
    Prior([0.318, 0.682])
    >>> stream.num_samples
    180
    """

    def __init__(self, num_classes: int, window: int = 10_000, pseudo_count: float = 1.0) -> None:
        self._window = check_whole(window, "window", least=1)
        self._pseudo_count = np.float64(check_number(pseudo_count, "pseudo_count", least=0))
        self._likelihood = np.empty((0, num_classes))
        self.prior = Prior.uniform(num_classes)

    @property
    def num_samples(self) -> int:
        """How many samples are in the window."""
        return len(self._likelihood)

    def update(self, scores: Scores) -> Prior:
        """Take in a batch, forget what falls out of the window, and return the new estimate."""
        if scores.num_classes != self.prior.num_classes:
            raise ValueError(
                f"this stream has {self.prior.num_classes} classes, but the scores have "
                f"{scores.num_classes}; use one stream for each model"
            )
        exact = as_numpy(scores.logits).astype(np.float64)
        moved = retarget(exact, scores.carried, Prior.uniform(scores.num_classes))
        both = np.concatenate([self._likelihood, likelihoods(moved)])
        self._likelihood = both[-self._window :]
        if self.num_samples:
            once, start = np.ones((self.num_samples, 1)), self.prior.probs[:, None]
            end = solve_free(self._likelihood, once, self._pseudo_count, start)
            self.prior = full(end.priors[:, 0])
        return self.prior
