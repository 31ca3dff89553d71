"""A model: a backbone and a head, from images to logits and the features they are made of."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.engine.averaging import predicting
from longtail.engine.backbones import Backbone
from longtail.engine.backbones.backbone import channels_last
from longtail.engine.training.image_source import Source, image_source
from longtail.engine.training.process_group import agree_on_buffers, current_processes
from longtail.heads import Head
from longtail.images import LabelledImages
from longtail.images.augment import Normalize
from longtail.losses.processes import whole_batch


class Outputs(NamedTuple):
    """What a model says of images: logits (N, C), and the features (N, D) they come from."""

    logits: Tensor
    features: Tensor


class Model(nn.Module):
    """A backbone with a head on its features, which says what the logits carry.

    >>> import longtail as lt
    >>> from longtail.engine.backbones import SmallCNN
    >>> model = Model(SmallCNN(), lt.heads.Linear(128, 10))
    >>> model(torch.zeros(2, 3, 32, 32)).logits.shape, model.carried
    (torch.Size([2, 10]), None)
    """

    def __init__(self, backbone: Backbone, head: Head) -> None:
        super().__init__()
        if backbone.dim != head.dim:
            raise ValueError(
                f"the backbone gives features of {backbone.dim} numbers, the head takes "
                f"{head.dim}; make the head with dim={backbone.dim}"
            )
        self.backbone, self.head = backbone, head

    @property
    def carried(self) -> Prior | None:
        """The prior the logits carry; None where that is not known, or no prior."""
        return self.head.carried

    def forward(self, images: Tensor) -> Outputs:
        """Logits and features."""
        features = self.backbone(images)
        return Outputs(self.head(features), features)


def predict(
    model: Model,
    images: LabelledImages,
    normalize: Normalize,
    batch_size: int = 256,
    *,
    num_workers: int = 0,
) -> Outputs:
    """Logits and features of all images, in their order, on the CPU; the model is then as it was.

    It computes where the model is, by `num_workers` processes that read image files. Several
    processes share the images, and all have all results after.
    """
    source = image_source(images, next(model.parameters()).device, num_workers)
    return predict_source(model, source, len(images), normalize, batch_size)


@torch.no_grad()
def predict_source(
    model: Model, source: Source, number: int, normalize: Normalize, batch_size: int
) -> Outputs:
    """The same of images that are at hand already."""
    if not number:
        raise ValueError("expected at least one image to predict, got none")
    these = current_processes()
    start, stop = (number * (these.rank + end) // these.world_size for end in (0, 1))
    agree_on_buffers(model)
    device = next(model.parameters()).device
    logits = [torch.empty(0, model.head.num_classes, device=device)]
    features = [torch.empty(0, model.head.dim, device=device)]
    with predicting(model):
        for batch in source.batches(range(start, stop), batch_size):
            outputs = model(channels_last(normalize(batch.images)))
            logits.append(outputs.logits.float())
            features.append(outputs.features.float())
    return Outputs(*(part.cpu() for part in whole_batch(torch.cat(logits), torch.cat(features))))
