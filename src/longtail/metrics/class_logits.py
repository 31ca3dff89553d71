r"""The logits of each class on its own samples and on all others (LADE fig. 3).

For class c: mean and standard deviation of f_c(x) over the samples of c, its positives, and over
the samples of other classes, its negatives. For logits that carry the uniform prior and classes
that can be told apart, f_c of the positives tends to log C (LADE eq. 21).
"""

from typing import NamedTuple

import torch

from longtail.core.arrays import Array, ArrayLike
from longtail.core.scores import Rows
from longtail.core.tensors import as_kind_of
from longtail.metrics.samples import check_samples


class ClassLogits(NamedTuple):
    """One entry a class, float64; NaN where a class has no such samples."""

    positive_mean: Array
    positive_std: Array
    negative_mean: Array
    negative_std: Array


def class_logits(logits: Rows, labels: ArrayLike) -> ClassLogits:
    """Mean and standard deviation of each class's logit, positives and negatives apart.

    Deviations are those of the samples at hand: their squares are divided by how many they are.

    >>> found = class_logits([[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]], labels=[0, 1, 0])
    >>> found.positive_mean.tolist(), found.positive_std.tolist(), found.negative_mean.tolist()
    ([4.0, 2.0], [1.0, 0.0], [1.0, 0.5])
    """
    samples = check_samples(logits, labels, None)
    size = samples.num_classes
    # About the first row's logits, so that squares lose no digits to a common part.
    start = samples.logits[0].to("cpu", torch.float64)
    start = torch.where(start.isfinite(), start, 0.0)
    number, total, square = torch.zeros(3, 2, size, dtype=torch.float64, device="cpu")
    for block in samples.blocks():
        rows = block.logits - start
        index = block.labels[:, None]
        own, others = rows.gather(1, index).squeeze(1), rows.scatter(1, index, 0.0)
        counts = torch.bincount(block.labels, minlength=size).double()
        number += torch.stack([counts, len(rows) - counts])
        for sums, power in ((total, 1), (square, 2)):
            mine = torch.bincount(block.labels, own.pow(power), minlength=size)
            sums += torch.stack([mine, others.pow(power).sum(dim=0)])
    mean = total / number
    spread = (square / number - mean.square()).clamp(min=0).sqrt()
    parts = (mean[0] + start, spread[0], mean[1] + start, spread[1])
    return ClassLogits(*(as_kind_of(part, logits) for part in parts))
