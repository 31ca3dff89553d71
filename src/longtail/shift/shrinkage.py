r"""EM checked by validation samples: a trend over the classes, and as much more as they vouch for.

EM gives every class its own number, and takes what a model gets wrong about a class for a change of
its frequency: tail classes, known from a handful of samples, suffer most. So two estimates are
made. The trend t⁰_y ∝ n_y^slope has one number for all classes, n the training counts. The free
estimate t¹ is EM's, with the trend for the centre of its Dirichlet. What sets the two apart,
e_y = log(t¹_y / t⁰_y), counts as far as it exceeds what miscalibration and chance alone would give:

    log t_y = log t⁰_y + trust · e_y + const,        trust = max(0, 1 − v / mean_y e_y²),

James and Stein's rule. The noise v is measured where the truth is known: validation samples are
drawn, as many as there are to estimate from and with the trend for their prior; the same two
estimates are made of each draw, and v is the mean of their e², which would be zero without noise. A
prior far off any trend leaves e much larger than that, and is followed class by class.

The intervals come from such draws too, with the estimate for their prior: they show how far off it
is where it is the truth. Two things they do not show. The validation samples are themselves few:
each draw gives those of a class other weights (the Bayesian bootstrap). And the estimate lies
nearer to the trend than the truth: what was shrunk away has the mean square (1 − trust)²·trust·mean
e², of which the draws, that start from the estimate, see the share `trust`. The rest, (1 −
trust)²·trust·v, is added, and what may lie off the trend without showing in e².

What no draw shows is that validation samples and those to come differ in more than their labels. On
the real scores of results/prior_shift.md, random shifts, intervals of the draws alone held 87 to 95
% of the classes, so they are made a quarter wider (`_BESIDE_NOISE`): where nothing but the labels
differs, as in results/coverage.md, they hold more than they say.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.draws import Draws
from longtail.core.retarget import log_ratio, prior_offset
from longtail.core.softmax import log_softmax
from longtail.posthoc.validation import Validation
from longtail.shift import em

_DRAWS = 20  # that measure the noise
_DRAW_TOLERANCE = 1e-5  # of draws only two digits are wanted
_BESIDE_NOISE = 1.25  # times the standard error that draws show


@dataclass(frozen=True, eq=False)
class _Pair:
    """The trend and the free estimate, one column a problem, and EM's end for the latter."""

    trend: Floats
    free: em.Climb

    @property
    def apart(self) -> Floats:
        """e, with mean zero over the classes."""
        ratio = log_ratio(np.log(self.trend), np.log(self.free.priors))
        return np.asarray(ratio - ratio.mean(axis=0))


def shrunken_em(
    logits: Numbers,
    validation: Validation,
    log_counts: Floats,
    pseudo_count: float,
    resamples: int,
    random: Draws,
) -> em.RawEstimate:
    """The estimate from logits that carry the uniform prior, of one model.

    The trend runs along `log_counts`, log n; if all are equal, it is uniform. The Dirichlet adds
    `pseudo_count` samples for each class on average; for the trend as many in all.
    """
    once = np.ones((len(logits), 1))
    pair = _estimates(em.likelihoods(logits), once, log_counts, pseudo_count, em.TOLERANCE)
    trend, free = em.full(pair.trend[:, 0]), em.full(pair.free.priors[:, 0])
    # Classes without validation samples cannot be drawn: draws are a problem of the others.
    present = validation.prior.probs > 0
    likelihood, along = em.likelihoods(validation.logits[:, present]), log_counts[present]

    def drawn(truth: Prior, number: int, again: bool = False) -> _Pair:
        chances = validation.weights_to(truth)
        if again:
            chances = _weighted_again(random, chances, validation.labels, number)
        times = em.drawn_again(random, chances, len(logits), number)
        return _estimates(likelihood, times, along, pseudo_count, _DRAW_TOLERANCE)

    noise = float(np.square(drawn(trend, _DRAWS).apart).mean())
    apart = float(np.square(pair.apart).mean())
    trust = max(0.0, 1 - noise / apart) if apart > 0 else 0.0
    prior = Prior.from_log(trend.log + trust * prior_offset(trend, free))
    spread = None
    if resamples:
        unseen = (1 - trust) ** 2 * noise * (trust + 2 * (2 / trend.num_classes) ** 0.5)
        seen = _off(drawn(prior, resamples, again=True), prior, trust, present)
        spread = _BESIDE_NOISE * np.sqrt(seen + unseen)
    slope, end = em.slope_of(trend.probs, log_counts), pair.free
    return em.RawEstimate(prior, spread, end.iterations, end.converged, slope, trust)


def _estimates(
    likelihood: Floats, weights: Floats, log_counts: Floats, pseudo_count: float, tolerance: float
) -> _Pair:
    """Both estimates, for each column of weights."""
    shape = len(log_counts), weights.shape[1]
    trend = np.full(shape, 1 / shape[0])
    if (log_counts != log_counts[0]).any():
        # One number is sought, so they are few in all.
        along = em.trend_step(log_counts, np.float64(pseudo_count / shape[0]))
        trend = em.climb(likelihood, weights, trend, along, tolerance).priors
    around = em.free_step(pseudo_count * shape[0] * trend)
    return _Pair(trend, em.climb(likelihood, weights, trend, around, tolerance))


def _off(drawn: _Pair, truth: Prior, trust: float, present: npt.NDArray[np.bool_]) -> Floats:
    """The mean square error of each class's log-probability over the draws, levelled.

    A class's few validation samples tell little of its error: the mean of all classes counts half,
    and stands alone for a class without any.
    """
    guessed = np.log(drawn.trend) + trust * drawn.apart
    right = log_softmax(truth.log[present][:, None], axis=0)
    own = np.square(log_ratio(right, log_softmax(guessed, axis=0))).mean(axis=1)
    levelled = np.full(len(present), own.mean())
    levelled[present] = 0.5 * (own + own.mean())
    return levelled


def _weighted_again(random: Draws, chances: Floats, labels: Indices, number: int) -> Floats:
    """So many rows of other chances within classes, of which each keeps its chance as a whole.

    They are those of the Bayesian bootstrap (Rubin, 1981): other samples of the same classes.
    """
    uniform = random.uniform(number * len(chances)).reshape(number, -1)
    weights, before = chances * -np.log(1 - uniform), np.bincount(labels, chances)
    for row in weights:
        row *= (before / np.maximum(np.bincount(labels, row), 1e-300))[labels]
    return weights
