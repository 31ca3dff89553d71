r"""Samplers: how often a sample of each class is drawn, and the prior the batches then follow.

    instance 1 · class-balanced 1/n_y · square-root n_y^(−½) · reversed n_y^(−2)
    effective-number (1 − β)/(1 − β^{n_y}) · progressive (1 − t)/N + t/(C·n_y), t from 0 to 1

These are the weights w_y of one sample of class y, so the batches follow w · prior. An epoch has as
many draws as there are samples. Of each class as many are drawn as its share says, to within one,
and they go through the class in shuffled passes: nothing comes twice before all came once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_whole
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.tensors import as_tensor, label_tensor


class ClassSampler(Sampler[int], ABC):
    """Positions of one epoch, the same for the same seed and epoch; a torch sampler.

    Several processes share an epoch: each takes every `num_replicas`-th position, and some come
    twice where the epoch cannot be divided, so that all take as many.

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        seed: Of all epochs.
        num_replicas: How many processes share an epoch.
        rank: Which of them this is.
    """

    together = 1  # how many positions in a row belong together

    def __init__(
        self,
        labels: ArrayLike,
        num_classes: int,
        *,
        seed: int = 0,
        num_replicas: int = 1,
        rank: int = 0,
    ) -> None:
        known = label_tensor(labels, num_classes).cpu()
        if not len(known):
            raise ValueError("a sampler needs at least one sample, got no labels")
        for number, name in ((seed, "seed"), (num_replicas, "num_replicas"), (rank, "rank")):
            check_whole(number, name)
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank must lie in 0 to {num_replicas - 1}, got {rank}")
        self.num_classes = num_classes
        self.seed, self.num_replicas, self.rank = seed, num_replicas, rank
        self.counts = torch.bincount(known, minlength=num_classes)
        self._by_class = torch.split(known.argsort(stable=True), self.counts.tolist())
        self.set_epoch(0)

    @abstractmethod
    def weights(self) -> Tensor:
        """w_y, how often a sample of each class is drawn in this epoch, relative to others."""

    def induced(self, prior: PriorLike) -> Prior:
        """The prior the batches of this epoch follow if the data follow `prior`."""
        return full_prior(prior, "sampled").reweighted(self.weights())

    def is_of(self, labels: Tensor) -> bool:
        """Whether it was made for these labels, in this order."""
        positions = torch.cat(self._by_class)
        classes = torch.arange(self.num_classes).repeat_interleave(self.counts)
        return len(positions) == len(labels) and torch.equal(labels.cpu()[positions], classes)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Say which epoch comes, counted from 0, and how many of its positions are done with."""
        self.epoch, self.start = epoch, start

    def order(self) -> Tensor:
        """All positions of this epoch, before they are shared out."""
        generator = self._generator()
        drawn = [
            _passes(positions, number, generator)
            for positions, number in zip(self._by_class, self._numbers(generator), strict=True)
        ]
        together = torch.cat(drawn)
        return together[torch.randperm(len(together), generator=generator)]

    def __iter__(self) -> Iterator[int]:
        groups = self.order().view(-1, self.together)
        shared = -(-len(groups) // self.num_replicas) * self.num_replicas
        groups = groups[torch.arange(shared) % len(groups)]
        return iter(groups[self.rank :: self.num_replicas].flatten()[self.start :].tolist())

    def __len__(self) -> int:
        groups = self._size() // self.together
        return -(-groups // self.num_replicas) * self.together - self.start

    def state_dict(self) -> dict[str, Any]:
        """The epoch and the place in it; what was drawn follows from the seed."""
        return {"epoch": self.epoch, "start": self.start, "seed": self.seed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a state was taken."""
        self.seed = int(state["seed"])
        self.set_epoch(int(state["epoch"]), int(state["start"]))

    def _size(self) -> int:
        """How many positions an epoch has."""
        return int(self.counts.sum()) // self.together * self.together

    def _generator(self) -> torch.Generator:
        # Mixed by torch's own generator: neighbouring seeds and epochs must not share a stream.
        mixed = torch.Generator().manual_seed(self.seed)
        keys = torch.randint(2**62, (2,), generator=mixed)
        return torch.Generator().manual_seed((int(keys[0]) + int(keys[1]) * self.epoch) % 2**63)

    def _numbers(self, generator: torch.Generator) -> list[int]:
        """How many to draw of each class: systematic sampling, in expectation as w · n says."""
        shares = self.weights() * self.counts
        ends = (shares.cumsum(0) / shares.sum() * self._size()).round(decimals=6)
        ends[-1] = self._size()
        marks = (ends + torch.rand((), generator=generator, dtype=torch.float64)).floor()
        return marks.diff(prepend=torch.zeros(1, dtype=marks.dtype)).long().tolist()


class InstanceSampler(ClassSampler):
    """Every sample once an epoch.

    >>> sorted(InstanceSampler([0, 0, 1], num_classes=2))
    [0, 1, 2]
    """

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
        return self._powers(-1.0)

    def _powers(self, power: float) -> Tensor:
        return self.counts.clamp(min=1).double() ** power


class SquareRootSampler(ClassBalancedSampler):
    """A class as often as the square root of its count."""

    def weights(self) -> Tensor:
        """n^(−½)."""
        return self._powers(-0.5)


class ReversedSampler(ClassBalancedSampler):
    """A class as often as one over its count: the rare ones most (BBN, Zhou et al., 2020)."""

    def weights(self) -> Tensor:
        """n^(−2)."""
        return self._powers(-2.0)


class EffectiveNumberSampler(ClassSampler):
    """A sample as often as the class-balanced weight of its class.

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        beta: In [0, 1): how much samples of one class repeat each other.
        options: Those of every sampler.
    """

    def __init__(
        self, labels: ArrayLike, num_classes: int, beta: float = 0.9999, **options: Any
    ) -> None:
        super().__init__(labels, num_classes, **options)
        self.beta = beta
        self.weights()  # says what is wrong with beta

    def weights(self) -> Tensor:
        """(1 − β) / (1 − β^n)."""
        return as_tensor(class_balanced_weights(self.counts.clamp(min=1), self.beta))


class ProgressiveSampler(ClassSampler):
    """From instance to class-balanced sampling over the epochs (Kang et al., 2020).

    Args:
        labels: The class of each sample.
        num_classes: How many classes there are.
        num_epochs: The last of them is class-balanced.
        options: Those of every sampler.
    """

    def __init__(self, labels: ArrayLike, num_classes: int, num_epochs: int, **options: Any):
        if check_whole(num_epochs, "num_epochs") < 2:
            raise ValueError(f"num_epochs must be at least 2 to go anywhere, got {num_epochs}")
        self.num_epochs = num_epochs
        super().__init__(labels, num_classes, **options)

    def weights(self) -> Tensor:
        """(1 − t)/N + t/(C · n)."""
        progress = min(self.epoch / (self.num_epochs - 1), 1.0)
        balanced = 1 / (self.num_classes * self.counts.clamp(min=1).double())
        return (1 - progress) / self._size() + progress * balanced


class MPerClassSampler(ClassBalancedSampler):
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

    def __init__(self, labels: ArrayLike, num_classes: int, m: int, **options: Any) -> None:
        super().__init__(labels, num_classes, **options)
        if not 1 <= m <= self._size():
            raise ValueError(f"m must lie in 1 to {self._size()} samples, got {m}")
        self.together = m

    def order(self) -> Tensor:
        """All positions of this epoch, m of a class in a row, class after class."""
        generator = self._generator()
        filled = self.counts.nonzero().flatten()
        m, number = self.together, self._size() // self.together
        rounds = -(-number // len(filled))
        order = [filled[torch.randperm(len(filled), generator=generator)] for _ in range(rounds)]
        drawn = {
            label: _passes(self._by_class[label], rounds * m, generator).view(rounds, m)
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


def _passes(positions: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """So many positions, in shuffled passes; each pass in an order of its own."""
    if not number:
        return positions[:0]
    whole = -(-number // len(positions))
    shuffled = torch.rand((whole, len(positions)), generator=generator).argsort(dim=1)
    return positions[shuffled.flatten()[:number]]
