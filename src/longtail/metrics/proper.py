r"""Proper scores: means over samples that only the true probabilities minimise.

    NLL = mean_i  -log p(y_i|x_i)            Brier = mean_i  Σ_c (p(c|x_i) - 1[y_i = c])²

The Brier score lies in 0 to 2. LADE eq. 30 and 31 print sums; its tables, and we, take means. With
weights w the mean is Σ_i w_i · term_i / Σ_i w_i: w_i = t(y_i) / test prior(y_i) estimates the mean
where labels follow t.
"""

import torch
import torch.nn.functional as F

from longtail.core.arrays import ArrayLike
from longtail.core.scores import Rows, Scores
from longtail.metrics.samples import check_samples


def nll(logits: Rows | Scores, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """The mean negative log-likelihood; infinite if a true class was ruled out (logit -inf).

    Args:
        logits: Shape (N, C).
        labels: True classes.
        weights: How much each sample counts.

    >>> nll([[0.0, 0.0], [1000.0, 0.0]], labels=[0, 0])
    0.3466
    """
    total = 0.0
    for block in check_samples(logits, labels, weights).blocks():
        terms = F.cross_entropy(block.logits, block.labels, reduction="none")
        # A sample of weight zero does not count, even where its term is infinite.
        total += float((block.weights * terms)[block.weights > 0].sum())
    return total


def brier(logits: Rows | Scores, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """The mean squared distance between the probabilities and the true class.

    Args:
        logits: Shape (N, C).
        labels: True classes.
        weights: How much each sample counts.

    >>> brier([[0.0, 0.0], [1000.0, 0.0]], labels=[0, 1])
    1.25
    """
    total = 0.0
    for block in check_samples(logits, labels, weights).blocks():
        misses = torch.softmax(block.logits, dim=1)
        misses[torch.arange(len(misses), device="cpu"), block.labels] -= 1
        total += float(block.weights @ misses.square().sum(dim=1))
    return total
