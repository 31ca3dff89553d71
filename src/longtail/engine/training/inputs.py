"""From images as they are stored to what the model sees in training.

The channels of a pixel end up side by side in memory, which convolutions of any library are faster
with; the weights stay as they are.
"""

from __future__ import annotations

from torch import Generator, Tensor

from longtail.engine.backbones.norms import channels_last
from longtail.engine.training.image_source import Batch
from longtail.images.augment import Augmentation, Mixup, Normalize


class Inputs:
    """Augments, normalises and mixes batches.

    Args:
        augment: None for nothing.
        normalize: To numbers around zero.
        mixup: α of mixup, or None.
        num_classes: How many classes there are, for soft labels.
        generator: Of all that is drawn.
    """

    def __init__(
        self,
        augment: Augmentation | None,
        normalize: Normalize,
        mixup: float | None,
        num_classes: int,
        generator: Generator,
    ) -> None:
        self.augment, self.normalize, self.num_classes = augment, normalize, num_classes
        self.mixup = None if mixup is None else Mixup(mixup)
        self.generator = generator

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The images, and their labels: class indices, or probabilities after mixup."""
        images, labels = batch
        if self.augment is not None:
            images = self.augment(images, self.generator)
        images = self.normalize(images)
        if self.mixup is not None:
            images, labels = self.mixup(images, labels, self.num_classes, self.generator)
        return channels_last(images), labels
