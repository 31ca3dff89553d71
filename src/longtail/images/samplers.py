r"""Samplers: how often a sample of each class is drawn.

    instance 1 · class-balanced 1/n_y · square-root n_y^(−½) · reversed n_y^(−2)
    effective-number (1 − β)/(1 − β^{n_y}) · progressive (1 − t)/N + t/(C·n_y), t from 0 to 1

These are the weights w_y of one sample of class y, so the batches follow w · prior.
"""

from __future__ import annotations

from typing import Self, Unpack

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_whole
from longtail.images.class_sampler import ClassSampler, SamplerOptions, shuffled_passes
from longtail.ranges import Count, FractionBelowOne


class InstanceSampler(ClassSampler):
    """Every sample once an epoch.

    >>> sorted(InstanceSampler([0, 0, 1], num_classes=2))
    [0, 1, 2]
    """

    follows_data = True

    def weights(self) -> Tensor:
        """One for all."""
        return torch.ones(self.num_classes, dtype=torch.float64)


class ClassBalancedSampler(ClassSampler):
    """Every class alike: what classifier re-training (cRT) draws.

    >>> labels = torch.tensor([0, 0, 0, 0, 0, 1])
    >>> sampler = ClassBalancedSampler(labels, num_classes=2)
    >>> labels[list(sampler)].bincount().tolist(), sampler.induced([5, 1])
    ([3, 3], Prior([0.5, 0.5]))
    """

    def weights(self) -> Tensor:
        """1 / n."""
        return _powers(self.counts, -1.0)


class SquareRootSampler(ClassSampler):
    """A class as often as the square root of its count."""

    def weights(self) -> Tensor:
        """n^(−½)."""
        return _powers(self.counts, -0.5)


class ReversedSampler(ClassSampler):
    """A class as often as one over its count: the rare ones most (BBN, Zhou et al., 2020)."""

    def weights(self) -> Tensor:
        """n^(−2)."""
        return _powers(self.counts, -2.0)


class EffectiveNumberSampler(ClassSampler):
    """A sample as often as the class-balanced weight of its class.

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        beta: In [0, 1): how much samples of one class repeat each other.
        options: Those of every sampler.
    """

    def __init__(
        self,
        labels: ArrayLike,
        num_classes: int,
        beta: FractionBelowOne = 0.9999,
        **options: Unpack[SamplerOptions],
    ) -> None:
        super().__init__(labels, num_classes, **options)
        self.beta = beta
        self.weights()  # says what is wrong with beta

    def weights(self) -> Tensor:
        """(1 − β) / (1 − β^n)."""
        return torch.as_tensor(class_balanced_weights(self.counts.clamp(min=1), self.beta))


class ProgressiveSampler(ClassSampler):
    """From instance to class-balanced sampling over the epochs (Kang et al., 2020).

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        num_epochs: The last of them is class-balanced.
        options: Those of every sampler.
    """

    changes = True

    def __init__(
        self,
        labels: ArrayLike,
        num_classes: int,
        num_epochs: int,
        **options: Unpack[SamplerOptions],
    ) -> None:
        if check_whole(num_epochs, "num_epochs") < 2:
            raise ValueError(f"num_epochs must be at least 2 to go anywhere, got {num_epochs}")
        self.num_epochs = num_epochs
        super().__init__(labels, num_classes, **options)

    @classmethod
    def for_epochs(cls, labels: ArrayLike, num_classes: int, num_epochs: int, seed: int) -> Self:
        """The sampler that is class-balanced in the last of these epochs."""
        return cls(labels, num_classes, num_epochs, seed=seed)

    def weights(self) -> Tensor:
        """(1 − t)/N + t/(C · n)."""
        progress = min(self.epoch / (self.num_epochs - 1), 1.0)
        balanced = _powers(self.counts, -1.0) / self.num_classes
        return (1 - progress) / self._size() + progress * balanced


class MPerClassSampler(ClassSampler):
    """Every class alike, `m` samples of it in a row: for losses that compare samples in a batch.

    With a batch size that m divides, a batch has `batch size / m` groups. All classes take a turn,
    in an order of its own each time, so only a batch that reaches from one turn into the next may
    have a class twice. A class with fewer than m samples repeats some.

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        m: How many in a row.
        options: Those of every sampler.

    >>> labels = torch.tensor([0, 1, 0, 1, 2, 2])
    >>> labels[list(MPerClassSampler(labels, num_classes=3, m=2))].view(-1, 2).T.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """

    def __init__(
        self, labels: ArrayLike, num_classes: int, m: Count, **options: Unpack[SamplerOptions]
    ) -> None:
        super().__init__(labels, num_classes, **options)
        if not 1 <= m <= self._size():
            raise ValueError(f"m must lie in 1 to {self._size()} samples, got {m}")
        self.together = m

    @classmethod
    def for_epochs(cls, labels: ArrayLike, num_classes: int, num_epochs: int, seed: int) -> Self:
        """A ValueError: there is no usual m."""
        raise ValueError(
            "give m_per_class as longtail.images.MPerClassSampler(labels, num_classes, m=...): "
            "m is yours to choose"
        )

    def weights(self) -> Tensor:
        """1 / n."""
        return _powers(self.counts, -1.0)

    def order(self) -> Tensor:
        """All positions of this epoch, m of a class in a row, class after class."""
        generator = self._generator()
        filled = self.counts.nonzero().flatten()
        m, number = self.together, self._size() // self.together
        rounds = -(-number // len(filled))
        order = [filled[torch.randperm(len(filled), generator=generator)] for _ in range(rounds)]
        drawn = {
            label: shuffled_passes(self._by_class[label], rounds * m, generator).view(rounds, m)
            for label in filled.tolist()
        }
        groups = [drawn[c][turn] for turn, classes in enumerate(order) for c in classes.tolist()]
        return torch.cat(groups[:number])


SAMPLERS: dict[str, type[ClassSampler]] = {
    "instance": InstanceSampler,
    "class_balanced": ClassBalancedSampler,
    "square_root": SquareRootSampler,
    "reversed": ReversedSampler,
    "effective_number": EffectiveNumberSampler,
    "progressive": ProgressiveSampler,
    "m_per_class": MPerClassSampler,
}


def _powers(counts: Tensor, power: float) -> Tensor:
    """Powers of the counts; of a class without samples, which is never drawn, that of 1."""
    return counts.clamp(min=1).double() ** power
