r"""What a reliability diagram shows: confidence and accuracy in bins (LADE fig. 4, 6).

    ECE = Σ_m share_m · |accuracy_m − confidence_m|

The bins are (lo, hi], by the confidence in the predicted class, as in `calibration`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.scores import Rows
from longtail.core.tensors import as_kind_of, as_tensor
from longtail.metrics.calibration import inner_edges
from longtail.metrics.samples import check_samples


class Reliability(NamedTuple):
    """One entry a bin, float64; confidence and accuracy are NaN where a bin holds no sample."""

    share: Array
    confidence: Array
    accuracy: Array

    @property
    def ece(self) -> float:
        """The expected calibration error, as `metrics.ece` computes it."""
        gaps = as_tensor(self.share) * (as_tensor(self.accuracy) - as_tensor(self.confidence))
        return float(gaps.abs().nansum())


def reliability(
    logits: Rows, labels: ArrayLike, weights: ArrayLike | None = None, bins: int = 20
) -> Reliability:
    """For each bin of confidence: the share of samples in it, mean confidence, and accuracy.

    Args:
        logits: Shape (N, C).
        labels: True classes.
        weights: How much each sample counts.
        bins: How many bins of equal width.

    >>> found = reliability([[0.0, 0.0], [0.0, 0.0], [9.0, -9.0]], labels=[0, 1, 0], bins=2)
    >>> found.share.tolist(), found.confidence.tolist(), found.accuracy.tolist()
    ([0.667, 0.333], [0.5, 1.0], [0.5, 1.0])
    """
    edges = inner_edges(bins)
    mass, claimed, right = torch.zeros(3, bins, dtype=torch.float64, device="cpu")
    for block in check_samples(logits, labels, weights).blocks():
        confidence = torch.softmax(block.logits, dim=1).amax(dim=1)
        cells = torch.bucketize(confidence, edges)
        correct = (block.logits.argmax(dim=1) == block.labels).double()
        mass += _sums(cells, block.weights, bins)
        claimed += _sums(cells, block.weights * confidence, bins)
        right += _sums(cells, block.weights * correct, bins)
    return Reliability(*(as_kind_of(each, logits) for each in (mass, claimed / mass, right / mass)))


def _sums(cells: Tensor, values: Tensor, bins: int) -> Tensor:
    return torch.bincount(cells, values, minlength=bins)
