r"""Finite worlds of yes/no labels that a sample may have together, known in full.

A world is a table of counts n(x, y_1, ..., y_L), and these samples are the whole population. Each
label by itself has

    p(y_l),    p(x|y_l) = Σ over the others of n / n(y_l),    p_t(y_l|x) ∝ p(x|y_l) · t(y_l)

which is what moving its logit to t gives. But if several labels change together while p(x|y_1, ...,
y_L) stays, and labels come together, p(x|y_l) does not stay: among the samples with label l the
others are more or less frequent than before. `after` is that other world, and the posterior there
is not the one that moving reached.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from longtail.core.label_odds import LabelOdds, LabelOddsLike
from longtail.core.tensors import as_tensor
from longtail.testing.world import minimum

_ROUNDS = 500  # of fitting marginals in turn


@dataclass(frozen=True, eq=False)
class LabelWorld:
    """A population of samples (x, y_1, ..., y_L), x one of finitely many points.

    >>> world = LabelWorld.long_tailed()
    >>> world.odds
    LabelOdds([0.455, 0.251, 0.102])
    """

    table: Tensor  # n(x, y_1, ..., y_L), shape (points, 2, ..., 2), numbers above zero

    def __post_init__(self) -> None:
        shape = self.table.shape
        if len(shape) < 2 or set(shape[1:]) != {2} or not (self.table > 0).all():
            raise ValueError(
                "a world of labels is a table of numbers above zero, one row a point and then an "
                f"axis of two, no and yes, for each label, got shape {tuple(shape)}"
            )

    @classmethod
    def long_tailed(cls) -> LabelWorld:
        """The standard world: five points, three labels that come together, each rarer."""
        generator = torch.Generator("cpu").manual_seed(3)
        rare = torch.tensor([30.0, 8.0, 2.0], device="cpu")
        return cls._drawn(generator, points=5, rare=rare)

    @classmethod
    def drawn(cls, seed: int, points: int = 4, labels: int = 2) -> LabelWorld:
        """A random world, its labels from frequent to rare."""
        generator = torch.Generator("cpu").manual_seed(seed)
        return cls._drawn(generator, points, 40.0 * 0.4 ** torch.arange(labels, device="cpu"))

    @classmethod
    def apart(cls, probs: LabelOddsLike = (0.3, 0.1)) -> LabelWorld:
        """Labels that are independent, each seen in a part of x of its own: moving is exact."""
        shares, table = as_tensor(LabelOdds.of(probs).probs), torch.ones(1, device="cpu").double()
        for at, share in enumerate(shares):
            seen = torch.tensor([[0.9, 0.3], [0.1, 0.7]], device="cpu").double()
            one = seen * torch.stack([1 - share, share])  # (part of x, no or yes)
            before = table.reshape(2**at, 1, *(2,) * at, 1)
            table = (before * one.view(1, 2, *(1,) * at, 2)).flatten(0, 1)
        return cls(1e4 * table)

    @classmethod
    def _drawn(cls, generator: torch.Generator, points: int, rare: Tensor) -> LabelWorld:
        axes = (2,) * len(rare)
        table = 300.0 * torch.rand(points, *axes, generator=generator, device="cpu") ** 2
        for at, size in enumerate(rare):
            scale = torch.stack([torch.ones((), device="cpu"), size / 60])
            table = table * scale.view(1, *(2 if k == at else 1 for k in range(len(rare))))
        # All labels of a sample together are more frequent than chance has it.
        table.view(points, -1)[:, -1] *= 4.0
        return cls(1 + table.long())

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return self.table.dim() - 1

    @property
    def odds(self) -> LabelOdds:
        """p(y_l) of the population; made from counts, if the table has counts."""
        by_label = self._by_label().sum(dim=1)
        if self.table.is_floating_point():
            return LabelOdds.of(by_label[:, 1] / by_label.sum(dim=1))
        return LabelOdds.from_counts(by_label[:, 1], int(self.table.sum()))

    def posterior(self, target: LabelOddsLike) -> Tensor:
        """p_t(y_l|x) where p(x|y_l) of each label stays: shape (points, labels), float64."""
        counts = self._by_label().double()
        yes = as_tensor(LabelOdds.of(target).probs).unsqueeze(1)
        joint = counts / counts.sum(dim=1, keepdim=True) * torch.stack([1 - yes, yes], dim=-1)
        return (joint[..., 1] / joint.sum(dim=-1)).T

    def after(self, target: LabelOddsLike) -> LabelWorld:
        """The world in which labels have these odds together and p(x|y_1, ..., y_L) stays.

        Of all such worlds the one whose labels hang together as they do here: the ratios of odds
        stay, found by fitting one label's share after the other.
        """
        yes = as_tensor(LabelOdds.of(target).probs)
        joint = self.table.double().sum(dim=0)
        start = joint = joint / joint.sum()
        for _ in range(_ROUNDS):
            for at, share in enumerate(yes):
                others = [k for k in range(self.num_labels) if k != at]
                now = joint.sum(dim=others) if others else joint
                axis = [2 if k == at else 1 for k in range(self.num_labels)]
                joint = joint * (torch.stack([1 - share, share]) / now).view(axis)
        return LabelWorld(self.table.double() * (joint / start))

    def samples(self) -> tuple[Tensor, Tensor]:
        """The population: the point of every sample, and its labels, 0 or 1 in float64."""
        every = (torch.arange(size, device=self.table.device) for size in self.table.shape)
        point, *labels = (axis.flatten() for axis in torch.meshgrid(*every, indexing="ij"))
        times = self.table.flatten().long()
        yes = torch.stack(labels, dim=1)
        return point.repeat_interleave(times), yes.repeat_interleave(times, dim=0)

    def minimise(self, loss: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The logits of each point that minimise the loss over the population, float64.

        Raises RuntimeError if the gradient does not vanish, as where there is no minimum.
        """
        points, labels = self.samples()
        shape = torch.empty(len(self.table), self.num_labels, device=self.table.device)
        return minimum(lambda logits: loss(logits[points], labels), shape)

    def _by_label(self) -> Tensor:
        """Counts by label, point, and no or yes."""
        axes = range(1, self.num_labels + 1)
        of_each = (self.table.sum(dim=[k for k in axes if k != at]) for at in axes)
        pairs = of_each if self.num_labels > 1 else iter([self.table])
        return torch.stack(list(pairs))
