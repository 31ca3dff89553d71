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
from longtail.engine.backbones import Backbone
from longtail.engine.training import EpochSchedule, Model, TrainingOptions
from longtail.flows.train import parts
from longtail.flows.train.checking import RecipeError
from longtail.flows.train.recipe import Recipe
from longtail.images import ClassSampler, ImageArrays, ImageSplits, LabelledImages
from longtail.images.augment import Augmentation, Chain, Normalize, channel_statistics

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
def build_backbone(option: parts.Backbone) -> Backbone:
    """The network."""
    network: Backbone = option.build()
    return network


@_part("head")
def build_head(option: parts.Head, dim: int, prior: Prior) -> heads.Head:
    """The head; one that re-scales by frequency is told the prior."""
    head: heads.Head = option.build(dim=dim, num_classes=prior.num_classes, train=prior)
    return head


@_part("loss")
def build_loss(recipe: Recipe, batches: Prior, head: heads.Head) -> losses.Loss:
    """The loss for batches that follow this prior."""

    def make(train: Prior, **more: Any) -> losses.Loss:
        loss: losses.Loss = recipe.loss.build(train=train, head=head, **more)
        return loss

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
    sampler: ClassSampler = recipe.sampler.build(
        labels=images.labels,
        num_classes=images.num_classes,
        num_epochs=recipe.epochs,
        seed=recipe.seed,
    )
    return sampler


@_part("augment")
def build_augment(recipe: Recipe) -> Augmentation | None:
    """All steps in their order."""
    steps = [option.build() for option in recipe.augment]
    return Chain(*steps) if steps else None


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


def build_schedule(recipe: Recipe) -> EpochSchedule:
    """The schedule, counting epochs."""
    schedule: EpochSchedule = recipe.schedule.build(total=recipe.epochs)
    return schedule


@_part("optimizer")
def build_options(recipe: Recipe) -> TrainingOptions:
    """What the loop is told."""
    moves = msgspec.structs.asdict(recipe.optimizer)
    return TrainingOptions(
        optimizer=moves.pop("name"),
        **moves,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        schedule=build_schedule(recipe),
        by_epoch=recipe.schedule.values()["by_epoch"],
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
    target = recipe.target.prior
    if target == "uniform":
        return Prior.uniform(prior.num_classes)
    if target == "train":
        return prior
    if len(target) != prior.num_classes:
        raise ValueError(
            f"it has {len(target)} weights, but the data have {prior.num_classes} classes"
        )
    return Prior.of([float(weight) for weight in target], zeros="keep")


def check_network(model: Model, images: LabelledImages, normalize: Normalize) -> None:
    """A RecipeError before training, if the network cannot take the images."""
    image = images[0][0]
    inputs = normalize(image[None].to(next(model.parameters()).device))
    try:
        with torch.no_grad():
            model.train(False)(inputs)
    except RuntimeError as error:
        raise RecipeError(
            f"the backbone cannot take images of shape {tuple(image.shape)} ({error}): set "
            "backbone.channels or backbone.inputs as they are, or make them larger with data.size"
        ) from error


def check_target(
    recipe: Recipe, images: ImageSplits[Any], prior: Prior, carried: Prior | None
) -> None:
    """A RecipeError before training, if scores cannot be moved as the recipe says."""
    build_target(recipe, prior)
    if carried is None and recipe.target.tau != 1:
        raise RecipeError(
            "target.tau moves logits from the prior they carry, and what this loss and head leave "
            "is none: say target.tau=1, and after training longtail fix --carried measure"
        )
    if recipe.target.tau == "auto" and images.validation is None:
        raise RecipeError(
            "target.tau=auto is chosen on a validation part, and there is none: hold some out with "
            "data.held_out=0.1, or say target.tau=1"
        )
