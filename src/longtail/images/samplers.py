r"""Samplers: how often a sample of each class is drawn.

    instance 1 · class-balanced 1/n_y · square-root n_y^(−½) · reversed n_y^(−2)
    effective-number (1 − β)/(1 − β^{n_y}) · progressive (1 − t)/N + t/(C·n_y), t from 0 to 1

These are the weights w_y of one sample of class y, so the batches follow w · prior. An epoch has as
many draws as there are samples. Of each class as many are drawn as its share says, to within one,
and they go through the class in shuffled passes: nothing comes twice before all came once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, TypedDict, Unpack

import torch
from torch import Tensor
from torch.utils.data import Sampler

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_seed, check_whole
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.tensors import label_tensor
from longtail.ranges import Count, FractionBelowOne


class SamplerOptions(TypedDict, total=False):
    """The options that every sampler takes."""

    seed: int
    num_replicas: int
    rank: int


class ClassSampler(Sampler[int]):
    """Positions of one epoch, the same for the same seed and epoch; a torch sampler.

    Several processes share an epoch: each takes every `num_replicas`-th position from its `rank`
    on, and some come twice where the epoch cannot be divided, so that all take as many.
    """

    power: ClassVar[float] = 0.0  # of the class count that is the weight of a sample
    together = 1  # how many positions in a row belong together
    follows_data: ClassVar[bool] = False  # whether the batches follow the prior of the data
    changes: ClassVar[bool] = False  # whether the weights are others in another epoch

    def __init__(
        self,
        labels: ArrayLike,
        num_classes: int,
        *,
        seed: int = 0,
        num_replicas: int = 1,
        rank: int = 0,
    ) -> None:
        classes = label_tensor(labels, num_classes).cpu()
        if not len(classes):
            raise ValueError("a sampler needs at least one sample, got no labels")
        check_seed(seed)
        for number, name in ((num_replicas, "num_replicas"), (rank, "rank")):
            check_whole(number, name)
        if not 0 <= rank < num_replicas:
            raise ValueError(f"rank must lie in 0 to {num_replicas - 1}, got {rank}")
        self.num_classes = num_classes
        self.seed, self.num_replicas, self.rank = seed, num_replicas, rank
        self.counts = torch.bincount(classes, minlength=num_classes)
        self._by_class = torch.split(classes.argsort(stable=True), self.counts.tolist())
        self.set_epoch(0)

    @classmethod
    def for_epochs(cls, labels: ArrayLike, num_classes: int, num_epochs: int, seed: int) -> Self:
        """The sampler for so many epochs, with the usual options."""
        return cls(labels, num_classes, seed=seed)

    def weights(self) -> Tensor:
        """w_y, how often a sample of each class is drawn in this epoch, relative to others."""
        # A class without samples is never drawn: any finite weight does.
        return self.counts.clamp(min=1).double() ** self.power

    def induced(self, prior: PriorLike) -> Prior:
        """The prior the batches of this epoch follow if the data follow `prior`."""
        data = full_prior(prior, "sampled")
        return data if self.follows_data else data.reweighted(self.weights())

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
        numbers = zip(self._by_class, self._numbers(generator), strict=True)
        drawn = torch.cat([_shuffled_passes(*each, generator) for each in numbers])
        return drawn[torch.randperm(len(drawn), generator=generator)]

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
        return torch.Generator().manual_seed(mixed_seed(self.seed, self.epoch))

    def _numbers(self, generator: torch.Generator) -> list[int]:
        """How many to draw of each class: systematic sampling, in expectation as w · n says."""
        shares = self.weights() * self.counts
        ends = (shares.cumsum(0) / shares.sum() * self._size()).round(decimals=6)
        ends[-1] = self._size()
        marks = (ends + torch.rand((), generator=generator, dtype=torch.float64)).floor()
        return marks.diff(prepend=torch.zeros(1, dtype=marks.dtype)).long().tolist()


def mixed_seed(seed: int, number: int) -> int:
    """A seed for each number: neighbouring seeds and numbers must not share a stream."""
    keys = torch.randint(2**62, (2,), generator=torch.Generator().manual_seed(seed))
    return (int(keys[0]) + int(keys[1]) * number) % 2**63


def _shuffled_passes(positions: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """So many positions, in shuffled passes; each pass in an order of its own."""
    if not number:
        return positions[:0]
    whole = -(-number // len(positions))
    shuffled = torch.rand((whole, len(positions)), generator=generator).argsort(dim=1)
    return positions[shuffled.flatten()[:number]]


class InstanceSampler(ClassSampler):
    """Every sample once an epoch.

    >>> sorted(InstanceSampler([0, 0, 1], num_classes=2))
    [0, 1, 2]
    """

    follows_data = True


class ClassBalancedSampler(ClassSampler):
    """Every class alike: what classifier re-training (cRT) draws.

    >>> labels = torch.tensor([0, 0, 0, 0, 0, 1])
    >>> sampler = ClassBalancedSampler(labels, num_classes=2)
    >>> labels[list(sampler)].bincount().tolist(), sampler.induced([5, 1])
    ([3, 3], Prior([0.5, 0.5]))
    """

    power = -1.0


class SquareRootSampler(ClassSampler):
    """A class as often as the square root of its count."""

    power = -0.5


class ReversedSampler(ClassSampler):
    """A class as often as one over its count: the rare ones most (BBN, Zhou et al., 2020)."""

    power = -2.0


class EffectiveNumberSampler(ClassSampler):
    """A sample as often as the class-balanced weight of its class, by β."""

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
    """From instance to class-balanced sampling over `num_epochs` (Kang et al., 2020)."""

    changes = True
    power = -1.0  # in the last epoch

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
        return (1 - progress) / self._size() + progress * (super().weights() / self.num_classes)


class MPerClassSampler(ClassSampler):
    """Every class alike, `m` samples of it in a row: for losses that compare samples in a batch.

    With a batch size that m divides, a batch has `batch size / m` groups. All classes take a turn,
    in an order of its own each time, so only a batch that reaches from one turn into the next may
    have a class twice. A class with fewer than m samples repeats some.

    >>> labels = torch.tensor([0, 1, 0, 1, 2, 2])
    >>> labels[list(MPerClassSampler(labels, num_classes=3, m=2))].view(-1, 2).T.tolist()
    [[0, 1, 2], [0, 1, 2]]
    """

    power = -1.0

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

    def order(self) -> Tensor:
        """All positions of this epoch, m of a class in a row, class after class."""
        generator = self._generator()
        filled = self.counts.nonzero().flatten()
        m, number = self.together, self._size() // self.together
        rounds = -(-number // len(filled))
        order = [filled[torch.randperm(len(filled), generator=generator)] for _ in range(rounds)]
        drawn = {
            label: _shuffled_passes(self._by_class[label], rounds * m, generator).view(rounds, m)
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
