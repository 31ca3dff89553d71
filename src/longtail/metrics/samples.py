"""Labelled logits at the door of every metric that reads them, and their walk in blocks of rows."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.arrays import ArrayLike
from longtail.core.scores import Rows
from longtail.core.tensors import as_tensor

# Entries of a block in float64: 32 MB, so that no metric ever copies all of a large N × C matrix.
_BLOCK = 2**22


class Samples(NamedTuple):
    """Checked samples, or a block of them.

    All weights together sum to one, so that a mean is a sum of weighted terms over the blocks.
    """

    logits: Tensor
    labels: Tensor
    weights: Tensor

    @property
    def num_classes(self) -> int:
        """How many classes the logits have."""
        return self.logits.shape[1]

    def blocks(self) -> Iterator["Samples"]:
        """All samples in order, a block of rows at a time, on the CPU and in float64."""
        rows = max(1, _BLOCK // self.num_classes)
        for start in range(0, len(self.labels), rows):
            at = slice(start, start + rows)
            logits = self.logits[at].to("cpu", torch.float64)
            yield Samples(logits, self.labels[at], self.weights[at])


def check_samples(logits: Rows | Scores, labels: ArrayLike, weights: ArrayLike | None) -> Samples:
    """The samples as tensors, or a ValueError; without weights all samples count the same.

    Scores were looked at when they were made: a few rows of them may sum to one by accident.
    """
    scores = logits if isinstance(logits, Scores) else Scores(logits, labels)
    if scores.labels is None:
        raise ValueError("this metric compares logits with labels, got no labels")
    if not len(scores):
        raise ValueError("a metric is a mean over samples, got none")
    known = as_tensor(scores.labels).cpu()
    return Samples(as_tensor(scores.logits), known, _check_weights(weights, len(scores)))


def weights_to(target: Prior, labels: Tensor) -> Tensor:
    """For each sample t(y) over the count of y: t(y)/q(y) up to a factor all samples share."""
    counts = torch.bincount(labels, minlength=target.num_classes)
    return as_tensor(target.probs)[labels] / counts[labels]


def _check_weights(weights: ArrayLike | None, num_samples: int) -> Tensor:
    if weights is None:
        return torch.full((num_samples,), 1 / num_samples, dtype=torch.float64, device="cpu")
    checked = as_tensor(weights).detach().to("cpu", torch.float64)
    if checked.shape != (num_samples,):
        raise ValueError(
            f"weights must be one number for each of {num_samples} samples, "
            f"got shape {tuple(checked.shape)}; for class weights pass weights[labels]"
        )
    if not (checked.isfinite() & (checked >= 0)).all() or not checked.sum() > 0:
        raise ValueError(
            "weights must be finite, none negative and not all zero, "
            f"got {checked.min():g} to {checked.max():g}"
        )
    return checked / checked.sum()
