r"""Calibration errors: how far confidence lies from the frequency with which it is right.

Samples are put into bins (lo, hi] of equal width by a probability. A bin B_m adds

    |B_m|/N · |mean true - mean claimed|  =  |Σ_{i in B_m} (true_i - claimed_i)| / N,

so every error here is a sum, over cells of samples, of the absolute value of a sum:

    ECE               cell: bin of the top label's confidence        correct_i - confidence_i
    class-wise        cell: class j, bin of p(j|x_i)                 1[y_i = j] - p(j|x_i)
    class-wise, LADE  cell: true class y_i, bin of the confidence    correct_i - confidence_i

The class-wise ones are divided by the number of classes. The usual form (Kull et al., NeurIPS 2019)
lets every sample enter once for every class, LADE's (eq. 29) only for its true class. Eq. 29 prints
|B_mj| without the 1/N that its tables have, and eq. 28 bins by p(y_i|x_i) where the top label's
confidence is meant. With weights, counts become sums of weights.
"""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_whole
from longtail.core.scores import Rows, Scores
from longtail.metrics.samples import Samples, check_samples

Form: TypeAlias = Literal["usual", "paper"]


def ece(
    logits: Rows | Scores, labels: ArrayLike, weights: ArrayLike | None = None, bins: int = 20
) -> float:
    """Expected calibration error of the most likely class.

    Args:
        logits: Shape (N, C).
        labels: True classes.
        weights: How much each sample counts.
        bins: How many bins of equal width.

    >>> ece([[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], labels=[0, 0, 0])    # 2/3 · |1 - 0.5|
    0.333
    """
    edges = inner_edges(bins)
    gaps = torch.zeros(bins, dtype=torch.float64, device="cpu")
    for block in check_samples(logits, labels, weights).blocks():
        confidence, gap = _top_label(block)
        add_gaps(gaps, torch.bucketize(confidence, edges), gap)
    return float(gaps.abs().sum())


def classwise_ece(
    logits: Rows | Scores,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    bins: int = 20,
    form: Form = "usual",
) -> float:
    """Calibration error of every class's probability, averaged over all classes.

    Args:
        logits: Shape (N, C).
        labels: True classes.
        weights: How much each sample counts.
        bins: How many bins of equal width.
        form: "usual" (Kull et al.) or "paper" (LADE eq. 29).

    >>> logits, labels = [[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], [0, 0, 0]
    >>> classwise_ece(logits, labels)                     # (1/3 + 1/3) / 2
    0.333
    >>> classwise_ece(logits, labels, form="paper")       # (1/3 + 0) / 2
    0.167
    """
    if form not in ("usual", "paper"):
        raise ValueError(f'form must be "usual" or "paper", got {form!r}')
    edges = inner_edges(bins)
    samples = check_samples(logits, labels, weights)
    gaps = torch.zeros(samples.num_classes * bins, dtype=torch.float64, device="cpu")
    for block in samples.blocks():
        if form == "usual":
            claimed = torch.softmax(block.logits, dim=1)
            add_every_class(gaps, claimed, block.labels, block.weights, edges)
        else:  # every sample enters for its true class only, in the bin of its confidence
            confidence, gap = _top_label(block)
            add_gaps(gaps, block.labels * bins + torch.bucketize(confidence, edges), gap)
    return float(gaps.abs().sum()) / samples.num_classes


def add_gaps(gaps: Tensor, cells: Tensor, gap: Tensor) -> None:
    """Add each sample's gap to its cell."""
    gaps += torch.bincount(cells, gap, minlength=len(gaps))


def add_every_class(
    gaps: Tensor, claimed: Tensor, labels: Tensor, weights: Tensor, edges: Tensor
) -> None:
    """Every sample enters once for each class j, in the bin of p(j|x)."""
    cells = torch.bucketize(claimed, edges, out_int32=True)
    cells += torch.arange(0, len(gaps), len(edges) + 1, dtype=torch.int32, device="cpu")
    gap = claimed * -weights[:, None]
    gap[torch.arange(len(gap), device="cpu"), labels] += weights
    add_gaps(gaps, cells.flatten(), gap.flatten())


def _top_label(block: Samples) -> tuple[Tensor, Tensor]:
    """The confidence in the predicted class, and weight · (correct - confidence)."""
    confidence = torch.softmax(block.logits, dim=1).amax(dim=1)
    # Predicted from the logits, as Scores.predict does: probabilities may tie where logits do not.
    correct = block.logits.argmax(dim=1) == block.labels
    return confidence, block.weights * (correct.double() - confidence)


def inner_edges(bins: int) -> Tensor:
    """What separates the bins; bucketize then puts p into (lo, hi], and 0 into the first bin."""
    check_whole(bins, "bins", least=1)
    # k/bins is the double nearest to the edge, which linspace does not promise.
    return torch.arange(1, bins, dtype=torch.float64, device="cpu") / bins
