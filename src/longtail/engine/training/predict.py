"""What a model says of a set of images: in the order of the set, on one process or several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn

from longtail.data.images import LabelledImages
from longtail.engine.backbones.norms import channels_last
from longtail.engine.training.image_source import Source, image_source
from longtail.engine.training.model import Model, Outputs
from longtail.engine.training.process_group import current_processes
from longtail.images.augment import Normalize
from longtail.losses.processes import whole_batch


def predict(
    model: Model,
    images: LabelledImages,
    normalize: Normalize,
    batch_size: int = 256,
    *,
    num_workers: int = 0,
) -> Outputs:
    """Logits and features of all images, on the CPU.

    Several processes share the images, and all have all results after.

    Args:
        model: On the device to compute on; it predicts, and is then as it was.
        images: In memory or on disk.
        normalize: What the model was trained with.
        batch_size: Images at a time, on each process.
        num_workers: Processes that read image files.

    >>> import longtail as lt
    >>> from longtail.data.images import ImageArrays
    >>> from longtail.engine.backbones import backbone
    >>> model = Model(backbone("small_cnn"), lt.heads.Linear(128, 10))
    >>> images = ImageArrays(torch.zeros(5, 3, 32, 32, dtype=torch.uint8), [0, 1, 2, 3, 9])
    >>> predict(model, images, Normalize()).logits.shape
    torch.Size([5, 10])
    """
    device = next(model.parameters()).device
    return predict_source(
        model, image_source(images, device, num_workers), len(images), normalize, batch_size
    )


@torch.no_grad()
def predict_source(
    model: Model, source: Source, number: int, normalize: Normalize, batch_size: int
) -> Outputs:
    """The same of images that are at hand already."""
    if not number:
        raise ValueError("expected at least one image to predict, got none")
    these = current_processes()
    own = range(
        number * these.rank // these.world_size, number * (these.rank + 1) // these.world_size
    )
    agree_on_buffers(model)
    device = next(model.parameters()).device
    dim, classes = model.head.dim, model.head.num_classes
    logits, features = (
        [torch.empty(0, classes, device=device)],
        [torch.empty(0, dim, device=device)],
    )
    with _predicting(model):
        for batch in source.batches(own, batch_size):
            outputs = model(channels_last(normalize(batch.images)))
            logits.append(outputs.logits.float())
            features.append(outputs.features.float())
    return Outputs(*(part.cpu() for part in whole_batch(torch.cat(logits), torch.cat(features))))


def agree_on_buffers(model: nn.Module) -> None:
    """All processes take the buffers of the first, such as batch-norm statistics."""
    if current_processes().world_size == 1:
        return
    buffers = list(model.buffers())
    for dtype in dict.fromkeys(buffer.dtype for buffer in buffers):
        # One message for all of them.
        alike = [buffer for buffer in buffers if buffer.dtype == dtype]
        sizes = [buffer.numel() for buffer in alike]
        sent = torch.cat([buffer.flatten() for buffer in alike])
        dist.broadcast(sent, src=0)
        for buffer, part in zip(alike, torch.split(sent, sizes), strict=True):
            buffer.copy_(part.view_as(buffer))


@contextmanager
def _predicting(model: nn.Module) -> Iterator[None]:
    """No layer trains; after it all is as it was."""
    flags = [(module, module.training) for module in model.modules()]
    model.train(False)
    try:
        yield
    finally:
        for module, training in flags:
            module.training = training
