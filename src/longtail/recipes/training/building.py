"""From a recipe's words to the values that training takes.

What these refuse becomes a RecipeError that says in which part of the recipe the wrong value is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import torch

from longtail import heads, losses
from longtail.core import Prior
from longtail.data import SAMPLERS, ClassSampler, InstanceSampler
from longtail.engine import augment, schedules
from longtail.engine.augment import Augmentation, Normalize, channel_statistics
from longtail.engine.backbones import Backbone, backbone
from longtail.engine.training import Model, TrainingOptions
from longtail.images import ImageArrays, LabelledImages
from longtail.recipes.training import input_options as inputs
from longtail.recipes.training import loss_options
from longtail.recipes.training import model_options as models
from longtail.recipes.training import optimizer_options as optimizers
from longtail.recipes.training.checking import RecipeError
from longtail.recipes.training.recipe import Recipe

_MEASURED = 2000  # images that mean and deviation are measured on where they are read from disk


@contextmanager
def _part(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise RecipeError(f"{name}: {error}") from error


def build_model(recipe: Recipe, prior: Prior) -> Model:
    """Backbone and head, with weights that the recipe's seed decides."""
    torch.manual_seed(recipe.seed)
    network = build_backbone(recipe.backbone)
    return Model(network, build_head(recipe.head, network.dim, prior))


@_part("backbone")
def build_backbone(option: models.Backbone) -> Backbone:
    """The network."""
    if isinstance(option, (models.Torchvision, models.Timm)):
        return backbone(f"{_tag(option)}:{option.network}", **option.options)
    return backbone(_tag(option), **_options(option))


@_part("head")
def build_head(option: models.Head, dim: int, prior: Prior) -> heads.Head:
    """The head; one that re-scales by frequency is told the prior."""
    make = getattr(heads, type(option).__name__)
    known = {"train": prior} if isinstance(option, models.WeightVectorNorm) else {}
    head: heads.Head = make(dim, prior.num_classes, **_options(option), **known)
    return head


@_part("loss")
def build_loss(recipe: Recipe, batches: Prior, head: heads.Head) -> losses.Loss:
    """The loss for batches that follow this prior."""
    kind = getattr(losses, type(recipe.loss).__name__)
    options = _options(recipe.loss)
    if isinstance(recipe.loss, loss_options.EstimatedOffset):
        options["head"] = head

    def make(train: Prior, **more: Any) -> losses.Loss:
        made: losses.Loss = kind(train, **options, **more)
        return made

    if recipe.drw is None:
        return make(batches)
    defer = losses.deferred_resampling if recipe.drw.resample else losses.deferred_reweighting
    return defer(make, batches, recipe.drw.start, recipe.drw.beta)


def carried(loss: losses.Loss, head: heads.Head) -> Prior | None:
    """What logits of this loss carry, if the head is one that gives its logits a prior."""
    return loss.carried if head.takes_prior else None


@_part("sampler")
def build_sampler(recipe: Recipe, images: LabelledImages) -> ClassSampler:
    """The sampler of all processes together."""
    option = recipe.sampler
    extra = {"num_epochs": recipe.epochs} if isinstance(option, inputs.Progressive) else {}
    make = SAMPLERS[_tag(option)]
    return make(images.labels, images.num_classes, seed=recipe.seed, **_options(option), **extra)


def batches_prior(sampler: ClassSampler, prior: Prior) -> Prior:
    """What the batches follow: the data as they are, with their counts, or as the sampler draws."""
    return prior if isinstance(sampler, InstanceSampler) else sampler.induced(prior)


@_part("augment")
def build_augment(recipe: Recipe) -> Augmentation | None:
    """All steps in their order."""
    kinds: dict[str, Any] = {
        "crop": augment.RandomCrop,
        "flip": augment.Flip,
        "color_jitter": augment.ColorJitter,
        "autoaugment": augment.AutoAugment,
        "cutout": augment.Cutout,
    }
    steps = [kinds[_tag(option)](**_options(option)) for option in recipe.augment]
    return augment.Chain(*steps) if steps else None


def build_normalize(recipe: Recipe, images: LabelledImages) -> Normalize:
    """The recipe's numbers, or those of the training images."""
    if recipe.normalize is not None:
        return Normalize(recipe.normalize.mean, recipe.normalize.std)
    if isinstance(images, ImageArrays):
        return Normalize(*channel_statistics(images.images))
    step = max(1, len(images) // _MEASURED)
    some = [images[at][0] for at in range(0, len(images), step)]
    sizes = sorted({tuple(image.shape[1:]) for image in some})
    if len(sizes) > 1:
        raise RecipeError(
            f"the training images are of different sizes, from {sizes[0]} to {sizes[-1]}: set "
            "data.size, such as data.size=224"
        )
    return Normalize(*channel_statistics(torch.stack(some)))


def build_schedule(recipe: Recipe) -> Any:
    """The schedule, counting epochs."""
    option = recipe.schedule
    options = {key: value for key, value in _options(option).items() if key != "by_epoch"}
    if isinstance(option, (optimizers.Cosine, optimizers.OneCycle)):
        options["total"] = recipe.epochs
    if isinstance(option, optimizers.OneCycle) and option.peak < 1:
        options["peak"] = option.peak * recipe.epochs
    return getattr(schedules, type(option).__name__)(**options)


@_part("optimizer")
def build_options(recipe: Recipe) -> TrainingOptions:
    """What the loop is told."""
    given = _options(recipe.optimizer)
    return TrainingOptions(
        optimizer=given.pop("name"),
        **given,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        schedule=build_schedule(recipe),
        by_epoch=recipe.schedule.by_epoch,
        precision=recipe.precision,
        ema=recipe.ema,
        mixup=recipe.mixup,
        compile=recipe.compile,
        parallel=recipe.parallel,
        seed=recipe.seed,
        num_workers=recipe.num_workers,
    )


@_part("target.prior")
def build_target(recipe: Recipe, prior: Prior) -> Prior:
    """The prior the scores are moved to."""
    wanted = recipe.target.prior
    if wanted == "uniform":
        return Prior.uniform(prior.num_classes)
    if wanted == "train":
        return prior
    if len(wanted) != prior.num_classes:
        raise ValueError(
            f"it has {len(wanted)} weights, but the data have {prior.num_classes} classes"
        )
    return Prior.of([float(weight) for weight in wanted], zeros="keep")


def _tag(option: msgspec.Struct) -> str:
    return str(option.__struct_config__.tag)


def _options(option: msgspec.Struct) -> dict[str, Any]:
    return msgspec.structs.asdict(option)
