"""Folds for cross-validation that give every class to every fold, as far as it goes."""

import torch

from longtail.core.arrays import Array, ArrayLike
from longtail.core.numbers import check_whole
from longtail.core.tensors import as_kind_of, as_tensor, label_tensor


def stratified_folds(labels: ArrayLike, num_folds: int, seed: int = 0) -> Array:
    """The fold of each sample: each class is dealt out in turn, in random order.

    A class of fewer samples than folds is missing from the held-out part of some folds, and a
    class of one sample from the training part of the fold that holds it.

    >>> stratified_folds([0, 0, 0, 0, 1, 1], num_folds=2).bincount().tolist()
    [3, 3]
    """
    given = as_tensor(labels)
    checked = label_tensor(given, int(given.max()) + 1 if len(given) else 1).cpu()
    check_whole(num_folds, "num_folds")
    if num_folds < 2:
        raise ValueError(f"num_folds must be two or more, got {num_folds}")
    if len(checked) < num_folds:
        raise ValueError(
            f"{num_folds} folds need at least as many samples, got {len(checked)}; give more "
            "samples, or ask for fewer folds"
        )
    generator = torch.Generator("cpu").manual_seed(check_whole(seed, "seed"))
    shuffled = torch.randperm(len(checked), generator=generator, device="cpu")
    # Stable, so that each class keeps the shuffled order; dealt through the classes in one run,
    # so that the folds differ by one sample at the most.
    by_class = shuffled[checked[shuffled].argsort(stable=True)]
    folds = torch.empty_like(by_class)
    folds[by_class] = torch.arange(len(by_class), device="cpu") % num_folds
    return as_kind_of(folds, labels)
