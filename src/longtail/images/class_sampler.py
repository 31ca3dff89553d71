"""What every sampler has in common: the positions of an epoch, and the prior the batches follow.

An epoch has as many draws as there are samples. Of each class as many are drawn as its share says,
to within one, and they go through the class in shuffled passes: nothing comes twice before all came
once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self, TypedDict

import torch
from torch import Tensor
from torch.utils.data import Sampler

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_whole
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.tensors import label_tensor


class SamplerOptions(TypedDict, total=False):
    """The options that every sampler takes."""

    seed: int
    num_replicas: int
    rank: int


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
        for number, name in ((seed, "seed"), (num_replicas, "num_replicas"), (rank, "rank")):
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

    @abstractmethod
    def weights(self) -> Tensor:
        """w_y, how often a sample of each class is drawn in this epoch, relative to others."""

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
        drawn = [
            shuffled_passes(positions, number, generator)
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


def shuffled_passes(positions: Tensor, number: int, generator: torch.Generator) -> Tensor:
    """So many positions, in shuffled passes; each pass in an order of its own."""
    if not number:
        return positions[:0]
    whole = -(-number // len(positions))
    shuffled = torch.rand((whole, len(positions)), generator=generator).argsort(dim=1)
    return positions[shuffled.flatten()[:number]]
