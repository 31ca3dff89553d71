r"""Parts of labelled data: long-tailed subsets to train on, shifted ones to test on, and folds.

Subsets are positions into the labels, so they cut features, images and labels alike. A shifted
test set (Hong et al. 2021) has an exponential profile over the classes ranked by training count,

    forward    n_j = N · ρ^(-rank_j / (C - 1))               as in training
    backward   n_j = N · ρ^(-(C - 1 - rank_j) / (C - 1))     the rare classes become the frequent

rounded down, where rank 0 has the most training samples and N is the largest number for which
every class has enough samples. (The paper prints the exponent over C; its code and sizes are this.)
"""

from bisect import bisect_right
from typing import Literal, TypeAlias

import numpy as np

from longtail.core.arrays import Array, ArrayLike, Indices, as_numpy, to_kind
from longtail.core.draws import Draws
from longtail.core.labels import check_counts, check_labels, positions_by_class
from longtail.core.numbers import check_choice, check_whole
from longtail.data.profiles import check_imbalance_ratio, exponential_counts, exponential_shares

Direction: TypeAlias = Literal["forward", "backward"]


def long_tailed_subset(labels: ArrayLike, counts: ArrayLike, seed: int = 0) -> Array:
    """Positions of a random subset with the given class counts, of which zero drops the class.

    They come class by class, class 0 first, shuffled within a class. Seed 0 and
    `exponential_counts` make the CIFAR-LT sets of the widely used published builder, image for
    image where the labels are in the original order.

    >>> long_tailed_subset([0, 1, 0, 1, 0, 1], counts=[3, 1]).tolist()
    [4, 2, 0, 5]
    """
    asked = check_counts(counts)
    by_class = positions_by_class(check_labels(labels, len(asked)), len(asked))
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


def capped_subset(labels: Indices, num_classes: int, most: int, seed: int = 0) -> Indices | None:
    """Ascending positions of at most `most` samples, one of each class at least; None for all.

    Large classes give up samples first, and small ones keep all of theirs.
    """
    most = max(most, num_classes)
    if len(labels) <= most:
        return None
    counts = np.bincount(labels, minlength=num_classes)
    # The cap of each class at which all of them together are just few enough.
    caps = range(1, int(counts.max()) + 1)
    cap = bisect_right(caps, most, key=lambda cap: int(np.minimum(counts, cap).sum()))
    return np.sort(as_numpy(long_tailed_subset(labels, np.minimum(counts, cap), seed)))


def exponential_subset(
    labels: ArrayLike, largest: int, imbalance_ratio: float, seed: int = 0
) -> Array:
    """Positions of a random subset whose classes, by their size, follow an exponential profile.

    The profile is `exponential_counts(largest, ...)`; a class that has fewer samples keeps all it
    has. Positions come as those of `long_tailed_subset`.

    >>> exponential_subset([0, 0, 1, 1, 1, 1, 1, 1], largest=4, imbalance_ratio=4).tolist()
    [1, 6, 4, 3, 5]
    """
    numbers = as_numpy(labels)
    available = np.bincount(check_labels(numbers, int(numbers.max()) + 1))
    profile = exponential_counts(largest, len(available), imbalance_ratio)
    counts = np.minimum(available, profile[ranks_by_count(available)])
    return long_tailed_subset(labels, counts, seed)


def shifted_subset(
    labels: ArrayLike, counts: ArrayLike, ratio: float, direction: Direction = "forward"
) -> Array:
    """Positions, ascending, of a test subset that is long-tailed along training or against it.

    Nothing is random: each class keeps its first samples. The training counts rank the classes, of
    equal ones the lower index first; the ratio is that of the largest class of the subset to the
    smallest.

    >>> labels = [0, 1, 2] * 4
    >>> shifted_subset(labels, counts=[90, 9, 30], ratio=4).tolist()
    [0, 1, 2, 3, 5, 6, 9]
    >>> shifted_subset(labels, counts=[90, 9, 30], ratio=4, direction="backward").tolist()
    [0, 1, 2, 4, 5, 7, 10]
    """
    check_choice(direction, Direction, "direction")
    check_imbalance_ratio(ratio)
    ranks = ranks_by_count(counts)
    if direction == "backward":
        ranks = len(ranks) - 1 - ranks
    by_class = positions_by_class(check_labels(labels, len(ranks)), len(ranks))
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


def stratified_folds(labels: ArrayLike, num_folds: int, seed: int = 0) -> Array:
    """The fold of each sample: each class is dealt out in turn, in random order.

    A class of fewer samples than folds is missing from the validation part of some folds, and a
    class of one sample from the training part of the fold that holds it.

    >>> folds = stratified_folds([0, 0, 0, 0, 1, 1], num_folds=2)
    >>> np.bincount(folds).tolist()
    [3, 3]
    """
    numbers = as_numpy(labels)
    indices = check_labels(numbers, int(numbers.max()) + 1 if len(numbers) else 1)
    check_whole(num_folds, "num_folds", least=2)
    if len(indices) < num_folds:
        raise ValueError(
            f"{num_folds} folds need at least as many samples, got {len(indices)}; give more "
            "samples, or ask for fewer folds"
        )
    shuffled = Draws(seed).permutation(len(indices))
    # Stable, so that each class keeps the shuffled order; dealt through the classes in one run,
    # so that the folds differ by one sample at the most.
    by_class = shuffled[indices[shuffled].argsort(kind="stable")]
    folds = np.empty_like(by_class)
    folds[by_class] = np.arange(len(by_class)) % num_folds
    result: Array = to_kind(folds, labels)
    return result


def ranks_by_count(counts: ArrayLike) -> Indices:
    """The rank of each class by descending count, 0 for the largest; ties go by index."""
    return np.argsort(np.argsort(-check_counts(counts), kind="stable"))


def _first(sizes: Indices, by_class: list[Indices]) -> Indices:
    return np.concatenate([each[:size] for size, each in zip(sizes, by_class, strict=True)])
