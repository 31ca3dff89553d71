"""From a recipe's words to the values that training takes: images, model, loss and so on.

What these refuse becomes a RecipeError that says in which part of the recipe the wrong value is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from longtail import heads, images, losses
from longtail.core import Prior
from longtail.engine.backbones import Backbone
from longtail.engine.training import EpochSchedule, FixedSize, Model, TrainingOptions
from longtail.flows.train import parts
from longtail.flows.train import recipe as recipes
from longtail.flows.train.reading import RecipeError
from longtail.flows.train.recipe import FOLDS, Recipe
from longtail.flows.train.run_folder import check_data
from longtail.images import ClassSampler, ImageFiles, ImageSplits, LabelledImages
from longtail.images.augment import Augmentation, Chain, Normalize, channel_statistics
from longtail.images.hugging_face import read_hugging_face
from longtail.images.labelled import check_every_class

_MEASURED = 2000  # images that mean and deviation are measured on where they are read from disk
_NO_SPREAD = 1e-9  # a deviation that is rounding: one pixel of a thousand million has more


class Setup(NamedTuple):
    """All that training takes."""

    images: ImageSplits[Any]
    prior: Prior  # of the training images
    sampler: ClassSampler  # of all processes together
    model: Model
    loss: losses.Loss  # for the prior that the batches follow, sampler included
    carried: Prior | None  # what the logits will carry, as loss and head say
    target: Prior  # what the scores are moved to
    options: TrainingOptions
    augment: Augmentation | None
    normalize: Normalize


def set_up(recipe: Recipe, device: torch.device) -> Setup:
    """Read the data and build all, or raise the error that training would end with."""
    # Labels, counts, prior: what the training images say before anything is trained.
    splits = read_data(recipe.data)
    prior = Prior.of(splits.train.counts)

    sampler = build_sampler(recipe, splits.train)
    model = build_model(recipe, prior).to(device)
    loss = build_loss(recipe, sampler.induced(prior), model.head).to(device)
    carried = loss.carried if model.head.takes_prior else None
    target = build_target(recipe, prior)
    check_choices(recipe, splits.validation, carried)

    options, augment = build_options(recipe), build_augment(recipe)
    normalize = build_normalize(recipe, splits.train)
    check_network(model, splits.train, normalize)
    return Setup(splits, prior, sampler, model, loss, carried, target, options, augment, normalize)


def read_data(data: recipes.Data) -> ImageSplits[Any]:
    """The parts of the set, cut as the recipe says, with a validation part if it asks for one."""
    path = check_data(data)
    if isinstance(data, recipes.CifarSet):
        return images.cifar_long_tailed(
            path,
            "cifar10" if isinstance(data, recipes.Cifar10) else "cifar100",
            data.imbalance_ratio,
            data.profile,
            data.seed,
            data.validation_share,
            labels="coarse" if isinstance(data, recipes.Cifar20) else "fine",
            official=data.official,
        )
    if isinstance(data, recipes.ImageLists):
        splits: ImageSplits[Any] = _read_lists(data, Path(path))
    elif isinstance(data, recipes.HuggingFace):
        splits = read_hugging_face(path, data.image_column, data.label_column)
    else:
        splits = images.read_image_splits(path)
    check_every_class(splits.train, f"the training part of {path}")
    if data.imbalance_ratio is not None:
        splits = images.long_tailed_images(
            splits, data.imbalance_ratio, data.profile, data.seed, data.validation_share
        )
    else:
        splits = images.with_validation(splits, data.validation_share, data.seed)
    return splits if data.size is None else _squares(splits, data.size, data)


def _read_lists(data: recipes.ImageLists, root: Path) -> ImageSplits[ImageFiles]:
    names = None if data.classes is None else os.fspath(root / data.classes)
    train = images.read_image_list(root / data.train, root, data.num_classes, names)

    def other(name: str | None) -> ImageFiles | None:
        if name is None:
            return None
        # Its classes are those of training, whichever of them it has; a .json file says its own.
        own = None if name.endswith(".json") else names or train.classes
        file, classes = root / name, train.num_classes
        return images.read_image_list(file, root, classes, own, allow_empty=True)

    return ImageSplits(train, other(data.validation), other(data.test))


def _squares(splits: ImageSplits[Any], size: int, data: recipes.OwnSet) -> ImageSplits[Any]:
    """Images of one size, training ones at random places if asked for."""

    def square(part: LabelledImages | None) -> FixedSize | None:
        return None if part is None else FixedSize(part, size, data.resize)

    train = FixedSize(splits.train, size, data.resize, random=data.random_crop)
    return ImageSplits(train, square(splits.validation), square(splits.test))


@contextmanager
def _part(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise RecipeError(f"{name}: {error}") from error


def build_model(recipe: Recipe, prior: Prior) -> Model:
    """Backbone and head, with weights that the recipe's seed decides."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        network = build_backbone(recipe.backbone)
        with _part("head"):  # one that re-scales by frequency needs the prior
            sizes = {"dim": network.dim, "num_classes": prior.num_classes}
            return Model(network, recipe.head.build(**sizes, train=prior))


@_part("backbone")
def build_backbone(option: parts.Backbone) -> Backbone:
    """The network."""
    network: Backbone = option.build()
    return network


def build_loss(recipe: Recipe, batches: Prior, head: heads.Head) -> losses.Loss:
    """The loss for batches that follow this prior, with the recipe's terms beside it."""
    loss, added = _logit_loss(recipe, batches, head), list[losses.AddedTerm]()
    sizes = {"dim": head.dim, "num_classes": head.num_classes, "train": batches}
    for at, option in enumerate(recipe.terms):
        with _part(f"terms[{at}]"):
            values = option.values()
            term: losses.Regularizer = option.build(**sizes)
            added.append(losses.AddedTerm(term, values["weight"], values["start"]))
    return losses.LossWithTerms(loss, added) if added else loss


@_part("loss")
def _logit_loss(recipe: Recipe, batches: Prior, head: heads.Head) -> losses.Loss:
    def make(train: Prior, **more: Any) -> losses.Loss:
        loss: losses.Loss = recipe.loss.build(train=train, head=head, **more)
        return loss

    if recipe.drw is None:
        return make(batches)
    defer = losses.deferred_resampling if recipe.drw.resample else losses.deferred_reweighting
    return defer(make, batches, recipe.drw.start, recipe.drw.beta)


@_part("sampler")
def build_sampler(recipe: Recipe, train: LabelledImages) -> ClassSampler:
    """The sampler of all processes together."""
    sampler: ClassSampler = recipe.sampler.build(
        labels=train.labels,
        num_classes=train.num_classes,
        num_epochs=recipe.epochs,
        seed=recipe.seed,
    )
    return sampler


@_part("augment")
def build_augment(recipe: Recipe) -> Augmentation | None:
    """All steps in their order."""
    steps = [option.build() for option in recipe.augment]
    return Chain(*steps) if steps else None


def build_normalize(recipe: Recipe, train: LabelledImages) -> Normalize:
    """The recipe's numbers, or those of the training images."""
    if recipe.normalize is not None:
        return Normalize(recipe.normalize.mean, recipe.normalize.std)
    if isinstance(train, images.ImageArrays):
        return _measured(train.images)
    step = max(1, len(train) // _MEASURED)
    some = [train[at][0] for at in range(0, len(train), step)]
    sizes = sorted({tuple(image.shape[1:]) for image in some})
    if len(sizes) > 1:
        raise RecipeError(
            f"the training images are of different sizes, from {sizes[0]} to {sizes[-1]}: set "
            "data.size, such as data.size=224"
        )
    return _measured(torch.stack(some))


def _measured(pixels: Tensor) -> Normalize:
    mean, std = channel_statistics(pixels)
    if min(std) < _NO_SPREAD:
        usable = ", ".join(f"{value if value > _NO_SPREAD else 1:.4g}" for value in std)
        raise RecipeError(
            f"channel {std.index(min(std))} of the training images has one value in all pixels, "
            "so its deviation is 0: leave that channel out, or set 'normalize={mean: "
            f"[{', '.join(f'{value:.4g}' for value in mean)}], std: [{usable}]}}'"
        )
    return Normalize(mean, std)


def build_schedule(recipe: Recipe) -> EpochSchedule:
    """The schedule, counting epochs."""
    schedule: EpochSchedule = recipe.schedule.build(total=recipe.epochs)
    return schedule


@_part("optimizer")
def build_options(recipe: Recipe) -> TrainingOptions:
    """The options of the loop."""
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
        early_sizes=tuple((early.until, early.size) for early in recipe.early_sizes),
        compile=recipe.compile,
        parallel=recipe.parallel,
        seed=recipe.seed,
        num_workers=recipe.num_workers,
    )


@_part("target.prior")
def build_target(recipe: Recipe, prior: Prior) -> Prior:
    """The prior the scores are moved to."""
    target, classes = recipe.target.prior, prior.num_classes
    if isinstance(target, str):
        return Prior.uniform(classes) if target == "uniform" else prior
    if len(target) != classes:
        raise ValueError(f"it has {len(target)} weights, but the data have {classes} classes")
    return Prior.of([float(weight) for weight in target], zeros="keep")


def check_network(model: Model, train: LabelledImages, normalize: Normalize) -> None:
    """A RecipeError before training, if the network cannot take the images."""
    image = train[0][0]
    inputs = normalize(image[None].to(next(model.parameters()).device))
    try:
        with torch.no_grad():
            model.train(False)(inputs)
    except RuntimeError as error:
        raise RecipeError(
            f"the backbone cannot take images of shape {tuple(image.shape)} ({error}): set "
            "backbone.channels or backbone.inputs as they are, or make them larger with data.size"
        ) from error


def check_choices(recipe: Recipe, validation: LabelledImages | None, carried: Prior | None) -> None:
    """A RecipeError before training, if what is chosen after it cannot be."""
    if carried is None and recipe.target.tau != 1:
        raise RecipeError(
            "target.tau moves logits from the prior they carry, and what this loss and head leave "
            "is none: say target.tau=1, and after training longtail fix --carried measure"
        )
    second = () if recipe.second_stage is None else recipe.second_stage.heads
    chooses_tau = any(each.tag == "tau_norm" and each.values()["tau"] == "auto" for each in second)
    weighs = recipe.expert_weights == "validation"
    number = 0 if validation is None else len(validation)
    for what, remedy, is_chosen in (
        ("target.tau=auto", "target.tau=1", recipe.target.tau == "auto"),
        ("the tau of tau_norm", "give it one: {name: tau_norm, tau: 1}", chooses_tau),
        ("expert_weights=validation", "expert_weights=equal", weighs),
    ):
        if is_chosen and number < FOLDS:
            raise RecipeError(
                f"{what} is chosen on a validation part of at least {FOLDS} images, and there are "
                f"{number}: set data.validation_share=0.1, or {remedy}"
            )
