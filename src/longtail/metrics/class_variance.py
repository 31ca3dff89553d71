r"""Variances of samples within classes, some of which have one or two, and intervals of shares.

The squares of n_y samples about their own mean have n_y − 1 degrees of freedom: a class with one
sample seems certain, and one with two half as uncertain as it is. What its mean took away is given
back by one sample of the variance that classes have on average,

    v_y = (S_y + v̄) / n_y,        v̄ = the mean of S_y / (n_y − 1) over classes with two or more,

which is unbiased where classes vary alike. If no class has two, v̄ is the variance of all samples as
if of one class; of a single sample there is none, and v̄ is zero: who asks has to know better.

The mean of few squares is often far too low: that of shares and of changes is zero where all the
samples seen are alike, which would be an interval of no width. Their intervals therefore raise v̄ to
a `least` and are biased upwards by it: for shares to the variance of a sample of any class, for
gains to the share of samples that changed (`comparison`).

A share of hits has Wilson's interval with as many samples as would give it this variance: one that
lies within 0 to 1, and does not shrink to a point where all samples are right. Samples that vary
less within classes than over all are worth more than as many drawn as one. By chance they seem to
be worth far more, as where all 20 of a class are right beside 1000 of another, so what is credited
ends at _MOST_GAIN times as many. benchmarks/coverage.py chose it: without it, its row of that case
falls to 73 %, with 1.5 that of 20 classes with 40 to 2 samples to just below 90 %; with 1, classes
that really differ would be credited nothing.
"""

import torch
from torch import Tensor

NORMAL = 1.959964  # of the normal distribution, 95 % lie within so many standard deviations
_MOST_GAIN = 1.25  # that classes drawn apart are credited with over samples drawn as one


def class_variances(sums: Tensor, squares: Tensor, counts: Tensor, least: float = 0.0) -> Tensor:
    """The variance of one sample of each class, from sums over its samples; 0 without samples.

    Args:
        sums: Over the samples of each class.
        squares: Likewise, of their squares.
        counts: How many they are.
        least: What v̄ is raised to; above 0 the variances are no longer unbiased.
    """
    n = counts.clamp(min=1)
    about = (squares - sums.square() / n).clamp(min=0)
    several = counts > 1
    if several.any():
        usual = (about[several] / (counts[several] - 1)).mean()
    else:
        total = counts.sum().clamp(min=1)
        left = (squares.sum() - sums.sum().square() / total).clamp(min=0)
        usual = left / (total - 1) if total > 1 else torch.zeros_like(left)
    return torch.where(counts > 0, (about + usual.clamp(min=least)) / n, 0.0)


def share_interval(hits: Tensor, counts: Tensor, shares: Tensor) -> tuple[float, float]:
    """The 95 % interval of Σ_y shares_y · hits_y / counts_y, where shares sum to one.

    >>> share_interval(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0]), torch.tensor([0.5, 0.5]))
    (0.342, 1.0)
    """
    seen = shares > 0
    hits, counts, shares = hits[seen], counts[seen], shares[seen]
    value = float((shares * hits / counts).sum())
    samples = float(1 / (shares.square() / counts).sum())  # equally weighted ones (Kish)
    inside = (samples * value + 0.5) / (samples + 1)  # neither 0 nor 1
    as_one = inside * (1 - inside)  # the variance of a sample of any class
    within = class_variances(hits, hits, counts, least=as_one)
    variance = float((shares.square() * within / counts).sum())
    low, high = wilson(value, min(as_one / variance, _MOST_GAIN * samples))
    return min(low, value), max(high, value)  # which rounding may leave out


def wilson(share: float, samples: float) -> tuple[float, float]:
    """The 95 % interval of a share of so many samples (Wilson, 1927)."""
    z = NORMAL**2 / samples
    center = (share + z / 2) / (1 + z)
    reach = (z * share * (1 - share) + z**2 / 4) ** 0.5 / (1 + z)
    return max(0.0, center - reach), min(1.0, center + reach)
