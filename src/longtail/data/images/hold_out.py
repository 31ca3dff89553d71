r"""A held-out part of the training samples, for choosing what must not be chosen on the test set.

Of a class with n samples the held-out part gets

    0                                        if n = 1
    min(n - 1, max(1, ⌊n · fraction + ½⌋))   if n ≥ 2

so that every class can be trained, and every class but those of one sample can be judged. Where
fraction · n is below ½ that is more than the fraction: the held-out part of a long tail has a
slightly shorter one.
"""

import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.labels import check_num_classes
from longtail.core.tensors import as_kind_of, as_tensor, label_tensor


def hold_out(labels: ArrayLike, fraction: float = 0.1, seed: int = 0) -> tuple[Array, Array]:
    """Positions of the samples to train on and of those held out, both in ascending order.

    Args:
        labels: The class of each training sample.
        fraction: Of each class, in 0 to 1; 0 holds nothing out.
        seed: Of the choice within the classes.

    >>> kept, held = hold_out([0] * 10 + [1] * 2 + [2], fraction=0.2)
    >>> len(kept), held.tolist()
    (10, [3, 4, 11])
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"fraction must lie in 0 to 1, 1 excluded, got {fraction}")
    given = as_tensor(labels)
    number = int(given.max()) + 1 if given.numel() else 1
    checked = label_tensor(given, check_num_classes(number, len(given))).cpu()
    generator = torch.Generator("cpu").manual_seed(seed)
    shuffled = torch.randperm(len(checked), generator=generator, device="cpu")
    # Stable, so that each class keeps the shuffled order, and its first samples are a random part.
    by_class = shuffled[checked[shuffled].argsort(stable=True)]
    counts = torch.bincount(checked)
    starts = torch.cumsum(counts, 0) - counts
    ranks = torch.arange(len(checked)) - starts[checked[by_class]]
    is_held = ranks < _held_sizes(counts, fraction)[checked[by_class]]
    kept, held = by_class[~is_held].sort().values, by_class[is_held].sort().values
    device = given.device
    return as_kind_of(kept.to(device), labels), as_kind_of(held.to(device), labels)


def _held_sizes(counts: Tensor, fraction: float) -> Tensor:
    if not fraction:
        return torch.zeros_like(counts)
    wanted = (counts.double() * fraction + 0.5).floor().long().clamp(min=1)
    return torch.minimum((counts - 1).clamp(min=0), wanted)
