"""The share of an epoch that this process draws."""

from __future__ import annotations

from copy import copy

from torch import Tensor

from longtail.engine.drawing import sampler_for
from longtail.engine.training.process_group import current_processes
from longtail.images import ClassSampler
from longtail.losses import Deferred, Loss


def shared_sampler(sampler: ClassSampler, labels: Tensor, loss: Loss | Deferred) -> ClassSampler:
    """The sampler of this process, which draws as the loss asks for if it does."""
    these = current_processes()
    shared = copy(sampler_for(sampler, labels, loss))
    shared.num_replicas, shared.rank = these.world_size, these.rank
    shared.set_epoch(0)
    return shared
