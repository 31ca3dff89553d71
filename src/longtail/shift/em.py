r"""EM for the prior of unlabelled samples (Saerens et al., 2002), with a Dirichlet prior.

With ℓ_i(y) = p(x_i|y), known up to a factor of i from logits that carry the uniform prior, repeat

    E    n_y = Σ_i w_i · t_y ℓ_i(y) / Σ_k t_k ℓ_i(k)
    M    t_y ∝ n_y + a_y

Each round raises Σ_i w_i log Σ_y t_y ℓ_i(y) + Σ_y a_y log t_y, the likelihood of the samples and of
a_y more of class y. `likeliest` gets to where EM ends in far fewer steps; on a stream it goes on
from where it ended before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import Floats, Numbers, as_numpy
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.draws import Draws
from longtail.core.numbers import check_number, check_whole
from longtail.core.retarget import retarget
from longtail.core.score_checks import check_softmax
from longtail.shift.likeliest import solve_free

_DRAW_GAP = 1e-6
_LOWEST = -69.0  # a logit below the highest: nothing beside it, and its square is no underflow
_LEAST_PROB = 1e-9  # scores cannot be moved from a prior with zeros
_ENOUGH = 30  # samples for an interval without a prior


@dataclass(frozen=True, eq=False)
class RawEstimate:
    """What every way of estimating a prior hands back."""

    prior: Prior  # without zeros
    spread: Floats | None  # standard deviations of log-probabilities, if asked for
    iterations: int
    converged: bool


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
        more = gamma_numbers(pseudo_count, chances)
        again = solve_free(likelihood, weights, more, start, _DRAW_GAP)
        spread = np.log(np.maximum(again.priors, _LEAST_PROB)).std(axis=1, ddof=1)
    return RawEstimate(full(end.priors[:, 0]), spread, end.iterations, end.converged)


def gamma_numbers(shape: float | Floats, chances: Floats) -> Floats:
    """Numbers of the gamma distribution of that shape, by their chances; zeros for a shape of 0."""
    from scipy.special import gammaincinv

    return np.asarray(gammaincinv(shape, chances)) if np.any(shape) else np.zeros_like(chances)


def likelihoods(uniform_logits: Numbers) -> Floats:
    """ℓ_i(y) over the largest of its row, from logits that carry the uniform prior; none is 0."""
    rows = uniform_logits.astype(np.float64)
    for part in slices(len(rows), rows.shape[1], IN_CACHE):
        block = rows[part]
        block -= block.max(axis=1, keepdims=True)
        np.exp(np.maximum(block, _LOWEST, out=block), out=block)
    return rows


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
        check_softmax(scores, "a stream of priors")
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
