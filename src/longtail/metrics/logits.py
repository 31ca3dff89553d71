r"""The logits themselves: of each class on its own samples and on all others, and their margins.

For class c: mean and standard deviation of f_c(x) over the samples of c, its positives, and over
the samples of other classes, its negatives (LADE fig. 3). For logits that carry the uniform prior
and classes that can be told apart, f_c of the positives tends to log C (LADE eq. 21). Margins are

    γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x),                                        (ELM fig. 3, 6)

positive where the sample is classified right, and by how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, overload

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import ArrayLike, ArrayT, Floats, Indices, as_numpy, to_kind
from longtail.core.blocks import blocks
from longtail.core.labels import positions_by_class
from longtail.metrics.samples import LabelsLike, Logits, NumpyLogits, kind_of, labelled

if TYPE_CHECKING:
    from torch import Tensor


class ClassLogits(NamedTuple, Generic[ArrayT]):
    """One entry a class, float64; NaN where a class has no such samples."""

    positive_mean: ArrayT
    positive_std: ArrayT
    negative_mean: ArrayT
    negative_std: ArrayT


@overload
def class_logits(
    logits: Scores[Tensor] | Tensor, labels: LabelsLike = None
) -> ClassLogits[Tensor]: ...


@overload
def class_logits(logits: NumpyLogits, labels: LabelsLike = None) -> ClassLogits[Floats]: ...


@overload
def class_logits(logits: Logits, labels: LabelsLike = None) -> ClassLogits[Any]: ...


def class_logits(logits: Logits, labels: LabelsLike = None) -> ClassLogits[Any]:
    """Mean and standard deviation of each class's logit, positives and negatives apart.

    Of labelled scores, or logits with labels. Deviations are those of the samples at hand: their
    squares are divided by how many they are.

    >>> made = class_logits([[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]], labels=[0, 1, 0])
    >>> made.positive_mean.tolist(), made.positive_std.tolist(), made.negative_mean.tolist()
    ([4.0, 2.0], [1.0, 0.0], [1.0, 0.5])
    """
    scores = labelled(logits, labels)
    size = scores.num_classes
    # About the first row's logits, so that squares lose no digits to a common part.
    start = as_numpy(scores.logits[:1])[0].astype(np.float64)
    start = np.where(np.isfinite(start), start, 0.0)
    number, total, square = np.zeros((3, 2, size))
    with np.errstate(invalid="ignore", divide="ignore"):  # of what is ruled out, or absent
        for block, truth in _blocks(scores):
            rows, at = block - start, np.arange(len(truth))
            own = rows[at, truth]
            rows[at, truth] = 0.0
            counts = np.bincount(truth, minlength=size)
            number += np.stack([counts, len(rows) - counts])
            for sums, power in ((total, 1), (square, 2)):
                sums[0] += np.bincount(truth, own**power, size)
                sums[1] += (rows**power).sum(axis=0)
        mean = total / number
        spread = np.sqrt(np.maximum(square / number - mean**2, 0))
    parts = (mean[0] + start, spread[0], mean[1] + start, spread[1])
    return ClassLogits(*(to_kind(part, kind_of(logits)) for part in parts))


@overload
def margins(logits: Scores[Tensor] | Tensor, labels: LabelsLike = None) -> Tensor: ...


@overload
def margins(logits: NumpyLogits, labels: LabelsLike = None) -> Floats: ...


@overload
def margins(logits: Logits, labels: LabelsLike = None) -> Any: ...


def margins(logits: Logits, labels: LabelsLike = None) -> Any:
    """γ of each sample, shape (N,), float64.

    >>> margins([[3.0, 1.0, 2.0], [0.0, 1.0, 4.0]], [0, 1]).tolist()
    [1.0, -3.0]
    """
    return to_kind(_margins(labelled(logits, labels)), kind_of(logits))


@overload
def margin_cdf(
    logits: Scores[Tensor] | Tensor, labels: LabelsLike = None, *, at: ArrayLike
) -> Tensor: ...


@overload
def margin_cdf(logits: NumpyLogits, labels: LabelsLike = None, *, at: ArrayLike) -> Floats: ...


@overload
def margin_cdf(logits: Logits, labels: LabelsLike = None, *, at: ArrayLike) -> Any: ...


def margin_cdf(logits: Logits, labels: LabelsLike = None, *, at: ArrayLike) -> Any:
    """The share of each class's samples whose margin is at most each of K numbers (ELM fig. 6).

    Shape (C, K), float64; NaN for a class without samples.

    >>> logits = [[1.0, 0.0, -9.0], [0.0, 3.0, -9.0], [0.0, 2.0, -9.0]]
    >>> margin_cdf(logits, [0, 0, 1], at=[0.0, 1.0]).tolist()
    [[0.5, 1.0], [0.0, 0.0], [nan, nan]]
    """
    scores, points = labelled(logits, labels), as_numpy(at)
    if points.ndim != 1:
        raise ValueError(f"at must be a list of numbers, got shape {points.shape}")
    values, truth = _margins(scores), as_numpy(scores.labels)
    shares = np.full((scores.num_classes, len(points)), np.nan)
    for label, at_class in enumerate(positions_by_class(truth, scores.num_classes)):
        if len(at_class):
            own = np.sort(values[at_class])
            shares[label] = np.searchsorted(own, points, side="right") / len(own)
    return to_kind(shares, kind_of(logits))


def _margins(scores: Scores[Any]) -> Floats:
    if scores.num_classes < 2:
        raise ValueError("a margin is taken to another class, but the logits have only one")
    parts = []
    for block, truth in _blocks(scores):
        at = np.arange(len(truth))
        own = block[at, truth]
        block[at, truth] = -np.inf
        parts.append(own - block.max(axis=1))
    return np.concatenate(parts)


def _blocks(scores: Scores[Any]) -> Iterator[tuple[Floats, Indices]]:
    """Blocks of logits that may be written to, float64, and their labels."""
    for rows, labels in blocks(scores.logits, scores.labels):
        yield rows.astype(np.float64), labels
