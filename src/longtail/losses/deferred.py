r"""Schedules: one loss first, another from some epoch on.

    ℓ = before for epochs 0 ... start − 1,    after from epoch `start` on

Features are learned on the data as they are; re-weighting or re-sampling comes late, when it moves
the boundaries and harms the features less. Both use class-balanced weights, as the published code
does, not 1/n.

Carries: what the loss in use carries. Cao et al., NeurIPS 2019 (DRW and DRS).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_whole
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import as_tensor
from longtail.losses.loss import ComposedLoss, Loss

LossFactory: TypeAlias = Callable[..., Loss]


class Deferred(ComposedLoss):
    """A loss until epoch `start`, another from then on, by `set_epoch`.

    What the two losses keep, such as centres, they do not share. `resampling` says how often a
    sample of each class is drawn from `start` on.
    """

    resampling: Tensor | None

    def __init__(
        self, before: Loss, after: Loss, start: int, resampling: ArrayLike | None = None
    ) -> None:
        super().__init__()
        check_whole(start, "start", least=0)
        first, second = before.num_classes, after.num_classes
        if first != second:
            raise ValueError(f"both losses must be of the same classes, got {first} and {second}")
        self.before, self.after, self.start = before, after, start
        self.resamples = resampling is not None
        weights = None if resampling is None else as_tensor(resampling).clone()
        self.register_buffer("resampling", weights)
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes, counted from 0."""
        self.epoch = epoch
        # forward looks at this alone: a compiler then compiles twice, and not in every epoch.
        self.switched = epoch >= self.start
        for loss in self.stages:
            loss.set_epoch(epoch)
        self._take_options()

    @property
    def stages(self) -> tuple[Loss, ...]:
        """Both losses."""
        return self.before, self.after

    @property
    def part(self) -> Loss:
        """The loss in use; what is carried is said of a model trained with it to the end."""
        return self.after if self.switched else self.before

    @property
    def sampling_weights(self) -> Tensor:
        """How often to draw a sample of each class in this epoch; on the CPU, for a sampler."""
        if self.resampling is None or not self.switched:
            return super().sampling_weights
        return self.resampling.cpu()

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The value of the loss in use."""
        return self.part(logits, labels, features)

    def get_extra_state(self) -> Tensor:
        """The epoch, for the state dict: a number that no device needs to hold."""
        return torch.tensor(self.epoch)

    def set_extra_state(self, state: Any) -> None:
        """The epoch from a state dict."""
        self.set_epoch(int(state))

    def extra_repr(self) -> str:
        """When it switches, for print(loss)."""
        return f"start={self.start}, epoch={self.epoch}"


def deferred_reweighting(
    make: LossFactory, train: PriorLike, start: int, beta: float = 0.9999
) -> Deferred:
    """DRW: a loss that takes class-balanced weights from epoch `start` on.

    `make` is a loss class, or a partial of one: called as `make(train)` and with `weight=`. With
    LDAM and `start` at four fifths of training this is LDAM-DRW.

    >>> from longtail.losses import CrossEntropy
    >>> loss = deferred_reweighting(CrossEntropy, [70, 25, 5], start=160)
    >>> for epoch in (159, 160):
    ...     loss.set_epoch(epoch)  # and then the batches: loss(model(x), labels).backward()
    ...     print(epoch, loss.carried)
    159 Prior([0.7, 0.25, 0.05])
    160 Prior([0.334, 0.333, 0.333])
    """
    prior = full_prior(train, "train")
    before = make(prior)
    weights = class_balanced_weights(prior, beta, before.label_smoothing)
    return Deferred(before, make(prior, weight=weights), start)


def deferred_resampling(
    make: LossFactory, train: PriorLike, start: int, beta: float = 0.9999
) -> Deferred:
    """DRS: batches drawn with class-balanced weights from epoch `start` on, and a loss that knows.

    The sampler is yours; `sampling_weights` tells it how often to draw a sample of each class. The
    loss is then made, by `make(train)`, for the prior that such batches follow, weights · train.
    Margins made from the prior follow it too; `lambda train: LDAM(counts)` keeps those of LDAM.

    >>> from torch.utils.data import WeightedRandomSampler
    >>> from longtail.losses import CrossEntropy
    >>> labels = torch.tensor([0] * 70 + [1] * 25 + [2] * 5)
    >>> loss = deferred_resampling(CrossEntropy, labels.bincount(), start=1)
    >>> for epoch in range(2):
    ...     loss.set_epoch(epoch)
    ...     sampler = WeightedRandomSampler(loss.sampling_weights[labels], len(labels))
    ...     # here come the batches of DataLoader(data, sampler=sampler, batch_size=128)
    ...     print(epoch, loss.sampling_weights.tolist(), loss.carried)
    0 [1.0, 1.0, 1.0] Prior([0.7, 0.25, 0.05])
    1 [0.169, 0.472, 2.358] Prior([0.334, 0.333, 0.333])
    """
    prior = full_prior(train, "train")
    weights = class_balanced_weights(prior, beta)
    return Deferred(make(prior), make(prior.reweighted(weights)), start, weights)
