"""Whether what is to be trained fits together: said at the door, before anything is moved."""

from __future__ import annotations

from longtail.data.images import LabelledImages
from longtail.engine.training.model import Model
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.shard_files import check_torch
from longtail.engine.training.sharding import check_sharding
from longtail.images import ClassSampler
from longtail.losses import Deferred, Loss


def check_training(
    model: Model,
    images: LabelledImages,
    sampler: ClassSampler,
    loss: Loss | Deferred,
    options: TrainingOptions,
    validation: LabelledImages | None,
    world_size: int,
) -> None:
    """A ValueError that says what does not fit."""
    losses = [loss.before, loss.after] if isinstance(loss, Deferred) else [loss]
    _check_classes(model, images, losses, validation)
    if sampler.num_classes != images.num_classes or not sampler.is_of(images.labels):
        raise ValueError(
            "the sampler was made for other labels than those of the images; make it from "
            "images.labels and images.num_classes"
        )
    if any(part.reduction != "mean" for part in losses):
        raise ValueError(f'a loss to train with must have reduction="mean", got {loss}')
    if any(0 <= part.ignore_index < images.num_classes for part in losses):
        raise ValueError(
            "the loss ignores a class by its ignore_index; leave the images of that class out "
            "instead: images.subset(...)"
        )
    if options.mixup is not None and not all(part.takes_soft_labels for part in losses):
        raise ValueError(
            f"mixup makes soft labels, which {type(losses[-1]).__name__} does not take; "
            "leave mixup out or take another loss"
        )
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained or any(True for _ in loss.parameters()):
        raise ValueError(
            "training changes the parameters of the model: it must have some that require a "
            "gradient, and the loss none of its own"
        )
    if options.precision == "float16" and trained[0].device.type != "cuda":
        raise ValueError('precision "float16" needs a GPU; on a CPU take "bfloat16" or "float32"')
    if options.parallel == "fsdp":
        check_torch()
        check_sharding(model, losses)
    if options.batch_size % world_size:
        raise ValueError(
            f"batch_size is that of all processes together and must be a multiple of their "
            f"number, got {options.batch_size} for {world_size}"
        )


def check_intervals(**numbers: int | None) -> None:
    """A ValueError that names a number of epochs or steps that is not positive."""
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise ValueError(f"{name} must be 1 or more, got {number}")


def _check_classes(
    model: Model,
    images: LabelledImages,
    losses: list[Loss],
    validation: LabelledImages | None,
) -> None:
    if not len(images) or (validation is not None and not len(validation)):
        raise ValueError("there must be images to train on, and to validate on, got none")
    numbers = {
        "the images have": images.num_classes,
        "the head has": model.head.num_classes,
        "the loss has": losses[0].num_classes,
        "the validation images have": images.num_classes
        if validation is None
        else validation.num_classes,
    }
    for what, number in numbers.items():
        if number != images.num_classes:
            raise ValueError(
                f"the images have {images.num_classes} classes, {what} {number}; "
                "all must be of the same classes"
            )
