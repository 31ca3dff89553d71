"""Folds for cross-validation that give every class to every fold, as far as it goes."""

import numpy as np

from longtail.core.arrays import Array, ArrayLike, as_numpy, to_kind
from longtail.core.draws import Draws
from longtail.core.labels import check_labels
from longtail.core.numbers import check_whole


def stratified_folds(labels: ArrayLike, num_folds: int, seed: int = 0) -> Array:
    """The fold of each sample: each class is dealt out in turn, in random order.

    A class of fewer samples than folds is missing from the held-out part of some folds, and a
    class of one sample from the training part of the fold that holds it.

    >>> folds = stratified_folds([0, 0, 0, 0, 1, 1], num_folds=2)
    >>> np.bincount(folds).tolist()
    [3, 3]
    """
    numbers = as_numpy(labels)
    indices = check_labels(numbers, int(numbers.max()) + 1 if len(numbers) else 1)
    check_whole(num_folds, "num_folds")
    if num_folds < 2:
        raise ValueError(f"num_folds must be two or more, got {num_folds}")
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
