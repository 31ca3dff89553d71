"""Validation during training: metrics on images that nothing is fitted to."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from longtail.core import Prior, Scores
from longtail.data.images import LabelledImages
from longtail.engine.training.image_source import image_source
from longtail.engine.training.learner import Learner
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.predict import predict_source
from longtail.engine.training.progress import Row
from longtail.engine.training.run_log import UNIFORM, validation_row
from longtail.images.augment import Normalize
from longtail.metrics import evaluate


class Validation:
    """Evaluates what a learner predicts with.

    Args:
        images: With their labels.
        learner: Whose average is validated, if it has one.
        normalize: As in training.
        options: Of training.
        counts: Training images of each class, for the groups.
    """

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
