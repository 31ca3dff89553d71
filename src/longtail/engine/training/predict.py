"""What a model says of a set of images: in the order of the set, on one process or several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.engine.backbones.backbone import channels_last
from longtail.engine.training.image_source import Source, image_source
from longtail.engine.training.learner import Learner
from longtail.engine.training.model import Model, Outputs
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.process_group import agree_on_buffers, current_processes
from longtail.engine.training.run_folder import UNIFORM, validation_row
from longtail.engine.training.run_state import Row
from longtail.images import LabelledImages
from longtail.images.augment import Normalize
from longtail.losses.processes import whole_batch
from longtail.metrics import evaluate


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
    >>> from longtail.images import ImageArrays
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


class Validation:
    """Evaluates what a learner predicts with."""

    def __init__(
        self,
        images: LabelledImages,
        learner: Learner,
        normalize: Normalize,
        options: TrainingOptions,
        counts: Tensor,
    ) -> None:
        self.labels, self.counts = images.labels, counts
        self.learner, self.normalize = learner, normalize
        self.batch_size = options.batch_size
        self.source = image_source(images, learner.device, options.num_workers)

    def row(self, carried: Prior | None) -> Row:
        """Metrics of the logits as they are, and the balanced accuracy under the uniform prior."""
        outputs = predict_source(
            self.learner.predictor(), self.source, len(self.labels), self.normalize, self.batch_size
        )
        scores = Scores(
            outputs.logits,
            labels=self.labels,
            carried=carried,
            counts=self.counts,
            split="validation",
        )
        uniform = None
        if carried is not None:
            metrics = evaluate(scores, target=Prior.uniform(scores.num_classes))
            uniform = metrics["balanced_accuracy"]
        return validation_row(evaluate(scores), uniform)


def best_epoch(history: Sequence[Row]) -> int | None:
    """The first epoch with the best balanced accuracy, under the uniform prior where known."""
    values = {}
    for row in history:
        value = row.get(UNIFORM)
        value = row.get("val_balanced_accuracy") if value is None else value
        if value is not None:
            values[int(row["epoch"] or 0)] = value
    return max(values, key=lambda epoch: (values[epoch], -epoch)) if values else None
