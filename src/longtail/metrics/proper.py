r"""Proper scores: means over samples that only the true probabilities minimise.

    NLL = mean_i  -log p(y_i|x_i)            Brier = mean_i  Σ_c (p(c|x_i) - 1[y_i = c])²

The Brier score lies in 0 to 2. LADE eq. 30 and 31 print sums; its tables, and we, take means. With
weights w the mean is Σ_i w_i · term_i / Σ_i w_i: w_i = t(y_i) / test prior(y_i) estimates the mean
where labels follow t.
"""

from longtail.core.arrays import ArrayLike
from longtail.metrics.accumulator import Accumulator
from longtail.metrics.calibration import sums_of
from longtail.metrics.samples import Logits


def nll(
    logits: Logits | Accumulator,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """The mean negative log-likelihood; infinite if a true class was ruled out (logit -inf).

    Args:
        logits: Labelled scores, or an accumulator; or logits of shape (N, C).
        labels: The true classes of logits.
        weights: How much each sample counts.

    >>> nll([[0.0, 0.0], [1000.0, 0.0]], labels=[0, 0])
    0.3466
    """
    sums = sums_of(logits, labels, weights)
    return sums.mean(sums.nll)


def brier(
    logits: Logits | Accumulator,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> float:
    """The mean squared distance between the probabilities and the true class, as `nll`.

    >>> brier([[0.0, 0.0], [1000.0, 0.0]], labels=[0, 1])
    1.25
    """
    sums = sums_of(logits, labels, weights)
    return sums.mean(sums.brier)
