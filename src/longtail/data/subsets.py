r"""Subsets of labelled data: long-tailed ones to train on, shifted ones to test on.

Both return positions into the labels, so they cut features, images and labels alike. A shifted
test set (Hong et al. 2021) has an exponential profile over the classes ranked by training count,

    forward    n_j = N · ρ^(-rank_j / (C - 1))               as in training
    backward   n_j = N · ρ^(-(C - 1 - rank_j) / (C - 1))     the rare classes become the frequent

rounded down, where rank 0 has the most training samples and N is the largest number for which
every class has enough samples. (The paper prints the exponent over C; its code and sizes are this.)
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Array, ArrayLike, to_kind
from longtail.core.labels import check_counts, check_labels
from longtail.data.profiles import check_imbalance_ratio, exponential_counts, exponential_shares


def long_tailed_subset(labels: ArrayLike, counts: ArrayLike, seed: int = 0) -> Array:
    """Positions of a random subset with the given class counts.

    Seed 0 and `exponential_counts` make the CIFAR-LT sets of the widely used published builder,
    image for image where the labels are in the original order.

    Args:
        labels: The class of each sample.
        counts: How many samples to keep of each class; zero drops the class.
        seed: Of the shuffle within the classes.

    Returns:
        Positions class by class, class 0 first, shuffled within a class: the published order.

    >>> long_tailed_subset([0, 1, 0, 1, 0, 1], counts=[3, 1]).tolist()
    [4, 2, 0, 5]
    """
    asked = check_counts(counts)
    by_class = _positions(labels, len(asked))
    for index, (number, positions) in enumerate(zip(asked, by_class, strict=True)):
        if number > len(positions):
            raise ValueError(
                f"class {index} has {len(positions)} samples, but counts ask for {number} of them; "
                "lower its count, for example with numpy.minimum(counts, available)"
            )
    # The legacy stream, and one shuffle even of a class that keeps all: as the published builder.
    stream = np.random.RandomState(seed)
    for positions in by_class:
        stream.shuffle(positions)
    kept: Array = to_kind(_first(asked, by_class), labels)
    return kept


def shifted_subset(
    labels: ArrayLike,
    counts: ArrayLike,
    ratio: float,
    direction: Literal["forward", "backward"] = "forward",
) -> Array:
    """Positions of a test subset whose label prior is long-tailed, along training or against it.

    Nothing is random: each class keeps its first samples.

    Args:
        labels: The class of each test sample.
        counts: Training samples of each class, which rank the classes; of equal ones the lower
            index ranks first.
        ratio: The largest class of the subset over the smallest, at least 1.
        direction: "forward" keeps most of what was frequent in training, "backward" of what was
            rare.

    Returns:
        Positions in ascending order.

    >>> labels = [0, 1, 2] * 4
    >>> shifted_subset(labels, counts=[90, 9, 30], ratio=4).tolist()
    [0, 1, 2, 3, 5, 6, 9]
    >>> shifted_subset(labels, counts=[90, 9, 30], ratio=4, direction="backward").tolist()
    [0, 1, 2, 4, 5, 7, 10]
    """
    if direction not in ("forward", "backward"):
        raise ValueError(f'direction must be "forward" or "backward", got {direction!r}')
    check_imbalance_ratio(ratio)
    ranks = ranks_by_count(counts)
    if direction == "backward":
        ranks = len(ranks) - 1 - ranks
    by_class = _positions(labels, len(ranks))
    available = np.array([len(positions) for positions in by_class])
    if not available.all():
        raise ValueError(
            f"every class needs a test sample, class {np.argmin(available)} has none; "
            "drop it from labels and counts"
        )
    largest = float((available / exponential_shares(len(ranks), ratio)[ranks]).min())
    sizes = exponential_counts(largest, len(ranks), ratio)[ranks]
    kept: Array = to_kind(np.sort(_first(sizes, by_class)), labels)
    return kept


def ranks_by_count(counts: ArrayLike) -> npt.NDArray[np.int64]:
    """The rank of each class by descending count, 0 for the largest; ties go by index."""
    order = np.argsort(-check_counts(counts), kind="stable")
    return np.argsort(order)


def _positions(labels: ArrayLike, num_classes: int) -> list[npt.NDArray[np.int64]]:
    """The positions of each class in file order, by one sort: thousands of classes cost no more."""
    indices = check_labels(labels, num_classes)
    ends = np.cumsum(np.bincount(indices, minlength=num_classes))
    return np.split(np.argsort(indices, kind="stable"), ends[:-1])


def _first(
    sizes: npt.NDArray[np.int64], by_class: list[npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    kept = [positions[:size] for size, positions in zip(sizes, by_class, strict=True)]
    return np.concatenate(kept)
