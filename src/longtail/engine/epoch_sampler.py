"""What is drawn in an epoch, by the sampler or as the loss asks, and what a model then carries."""

from typing import Unpack

import torch
from torch import Tensor

from longtail.core import Prior
from longtail.core.arrays import ArrayLike
from longtail.core.retarget import prior_offset
from longtail.images import ClassSampler
from longtail.images.samplers import SamplerOptions
from longtail.losses import Loss


class DeferredSampler(ClassSampler):
    """Draws as often as the loss asks for: deferred re-sampling (DRS)."""

    changes = True

    def __init__(
        self, labels: ArrayLike, num_classes: int, loss: Loss, **options: Unpack[SamplerOptions]
    ) -> None:
        self.loss = loss
        super().__init__(labels, num_classes, **options)

    def weights(self) -> Tensor:
        """Those of the loss."""
        return torch.as_tensor(self.loss.sampling_weights).double()


def sampler_for(sampler: ClassSampler, labels: Tensor, loss: Loss) -> ClassSampler:
    """The sampler, or one that draws as the loss asks for if it does."""
    if not loss.resamples:
        return sampler
    if not sampler.follows_data:
        raise ValueError(
            f"the loss says itself how often to draw each class, and so does the "
            f"{type(sampler).__name__}; give an InstanceSampler, or defer re-weighting instead"
        )
    return DeferredSampler(labels, sampler.num_classes, loss, seed=sampler.seed)


def carried_after(loss: Loss, sampler: ClassSampler) -> Prior | None:
    """What a model carries that is trained with this loss on these batches."""
    if loss.carried is None:
        return None
    batches = sampler.induced(Prior.of(sampler.counts, zeros="smooth"))
    epsilon = loss.label_smoothing
    moved = prior_offset(loss.batches.smoothed(epsilon), batches.smoothed(epsilon))
    return Prior.from_log(loss.carried.log + moved)
