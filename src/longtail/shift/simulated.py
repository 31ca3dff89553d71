r"""Shifts that are simulated with validation samples: what an estimate may rely on.

Priors are drawn around the uniform one, from far off it to near it, and for each as many validation
samples as there are to estimate from, with repetition. There the truth is known, and so is how far
an estimate is off. Three things are chosen by that, and by nothing else:

    η          what a sample counts as evidence: the smallest whose estimates have nearly the least
               relative entropy to the truth, Σ_y t_y log(t_y / estimate_y), on average
    widening   of the intervals, so that they hold the truth as often as they say: by the shifts
               whose estimate has about the same strength
    the share of neighbours (`shift.neighbours`): the one of the least log-loss under the truth

Validation scores are calibrated by what was fitted on the other folds: a calibration has errors of
its own, and those are of the kind that more samples do not mend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats, Indices
from longtail.core.draws import Draws
from longtail.data.subsets import capped_subset
from longtail.posthoc.validation import Validation
from longtail.shift import em
from longtail.shift.posterior import Posterior, posteriors, trend_along
from longtail.stats import NORMAL

COUNTING = tuple(0.5 ** (k / 2) for k in range(7))  # values of η
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # of the priors drawn, in samples a class
_LEAST_DRAWS, _MOST_DRAWS = 3, 10  # of each strength
_ENOUGH_NUMBERS = 100  # classes × draws, of each strength
_LEAST_VARIANCE = 1e-20  # a single class has none
_NEARLY = 1.03  # times the least
_MOST_NUMBERS = 5_000_000  # in likelihoods: of the larger classes only some samples are used


@dataclass(frozen=True, eq=False)
class Simulated:
    """Shifts, one a column."""

    rows: Indices  # the validation samples that are in any of them
    times: Floats  # how often each is in which, of shape (rows, shifts)
    truths: Floats  # the shares of the classes, of shape (C, shifts)


class Reliance(NamedTuple):
    """What shifts with known truths say of an estimate."""

    eta: float
    strengths: Floats  # of the estimates of each shift
    off: list[Floats]  # for each |log truth − log estimate| over its standard error, of all classes

    def widening(self, strength: float) -> float:
        """Of intervals around an estimate of that strength; at least 1.

        Of the shifts that look like it those count that are hardest to tell: intervals shall hold
        whatever shift it is.
        """
        far = np.abs(np.log(self.strengths / strength))
        nearest = set(np.argsort(far, kind="stable")[: (len(far) + 1) // 2].tolist())
        each = len(self.off) // len(STRENGTHS)
        alike = [
            [self.off[k] for k in range(first, first + each) if k in nearest]
            for first in range(0, len(self.off), each)
        ]
        hardest = max(float(np.quantile(np.concatenate(of), 0.95)) for of in alike if of)
        return max(1.0, hardest / NORMAL)


def simulated_shifts(validation: Validation, num_samples: int, random: Draws) -> Simulated:
    """Shifts of that many samples, from far off the uniform prior to near it."""
    size = len(validation.prior)
    some = capped_subset(
        validation.labels, size, _MOST_NUMBERS // max(size, len(STRENGTHS) * _MOST_DRAWS)
    )
    kept = np.arange(len(validation.labels)) if some is None else some
    labels = validation.labels[kept]
    each = int(np.clip(np.ceil(_ENOUGH_NUMBERS / size), _LEAST_DRAWS, _MOST_DRAWS))
    strengths = np.repeat(STRENGTHS, each)
    chances = random.uniform(size * len(strengths)).reshape(size, -1)
    shares = np.maximum(em.gamma_numbers(strengths, chances), 1e-9)
    counts = np.bincount(labels, minlength=size)
    shares[counts == 0] = 0.0
    times = em.drawn_again(
        random, (shares / counts.clip(1)[:, None])[labels].T, num_samples, len(strengths)
    )
    truths = np.stack([np.bincount(labels, column, size) for column in times.T], axis=1)
    there = times.any(axis=1)
    return Simulated(kept[there], times[there], truths / num_samples)


def reliance(validation: Validation, log_counts: Floats, shifts: Simulated) -> Reliance:
    """How far estimates may be relied on, from logits under the uniform prior."""
    present = validation.prior.probs > 0
    likelihood = em.likelihoods(validation.logits[shifts.rows][:, present])
    trends = [trend_along(likelihood, own, log_counts[present]) for own in shifts.times.T]
    centres = np.stack([trend.probs for trend in trends], axis=1)
    found = posteriors(likelihood, shifts.times, centres, COUNTING)
    pairs = list(zip(shifts.truths[present].T, found, strict=True))
    losses = np.array([[_entropy_from(truth, one) for one in some] for truth, some in pairs])
    means = losses.mean(axis=0)
    best = int(np.flatnonzero(means <= _NEARLY * means.min())[-1])
    return Reliance(
        COUNTING[best],
        np.array([some[best].strength for _, some in pairs]),
        [
            _off(truth, some[best], trend.variances)
            for (truth, some), trend in zip(pairs, trends, strict=True)
        ],
    )


def _entropy_from(truth: Floats, found: Posterior) -> float:
    there = truth > 0
    return float(truth[there] @ (np.log(truth[there]) - found.log_prior[there]))


def _off(truth: Floats, found: Posterior, of_trend: Floats) -> Floats:
    there = truth > 0
    apart = np.abs(np.log(truth[there]) - found.log_prior[there])
    variances = np.maximum((found.variances + of_trend)[there], _LEAST_VARIANCE)
    return np.asarray(apart / np.sqrt(variances))
