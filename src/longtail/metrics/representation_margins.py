r"""Margins of labelled logits, and their distribution in each class.

    γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x)                                         (ELM fig. 3, 6)

Positive where the sample is classified right, and by how much.
"""

import torch

from longtail.core.arrays import Array, ArrayLike
from longtail.core.scores import Rows
from longtail.core.tensors import as_kind_of, as_tensor, label_tensor
from longtail.metrics.samples import check_samples


def margins(logits: Rows, labels: ArrayLike) -> Array:
    """γ of each sample, shape (N,), float64, on the CPU.

    >>> margins([[3.0, 1.0, 2.0], [0.0, 1.0, 4.0]], [0, 1]).tolist()
    [1.0, -3.0]
    """
    samples = check_samples(logits, labels, None)
    if samples.num_classes < 2:
        raise ValueError("a margin is taken to another class, but the logits have only one")
    parts = []
    for block in samples.blocks():
        index = block.labels[:, None]
        own = block.logits.gather(1, index).squeeze(1)
        parts.append(own - block.logits.scatter(1, index, -torch.inf).amax(dim=1))
    return as_kind_of(torch.cat(parts), logits)


def margin_cdf(margins: Array, labels: ArrayLike, num_classes: int, at: ArrayLike) -> Array:
    """The share of each class's samples whose margin is at most each of `at` (ELM fig. 6).

    Args:
        margins: One a sample, as `margins` makes them.
        labels: Class indices.
        num_classes: How many classes there are.
        at: Where to evaluate, shape (K,).

    Returns:
        Shape (C, K), float64; NaN for a class without samples.

    >>> margin_cdf([1.0, -3.0, 2.0], [0, 0, 1], num_classes=3, at=[0.0, 1.0]).tolist()
    [[0.5, 1.0], [0.0, 0.0], [nan, nan]]
    """
    values = as_tensor(margins).detach().to("cpu", torch.float64)
    known = label_tensor(labels, num_classes).cpu()
    points = as_tensor(at).detach().to("cpu", torch.float64)
    if values.shape != known.shape or points.dim() != 1:
        raise ValueError(
            f"margins must be one number for each of {len(known)} labels and at a list of numbers, "
            f"got shapes {tuple(values.shape)} and {tuple(points.shape)}"
        )
    shares = []
    for label in range(num_classes):
        own = values[known == label].sort().values
        shares.append(torch.searchsorted(own, points, right=True) / float(len(own) or torch.nan))
    return as_kind_of(torch.stack(shares).double(), margins)
