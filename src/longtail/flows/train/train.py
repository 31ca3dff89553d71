"""train: the whole flow on one page, from labels to metrics; and what it would be, untrained.

    labels → counts → prior → loss and head → scores → target → metrics

Logits carry a prior: that of the loss and the sampler they were trained with. Everything after
training moves them from there to the prior they are to be used under.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import torch

from longtail.core import GroupEdges, Prior
from longtail.core.files import locked
from longtail.engine import training
from longtail.engine.training import EpochEnd, StepEnd, processes
from longtail.flows.file_names import MODEL
from longtail.flows.generation import generation
from longtail.flows.train import building
from longtail.flows.train.model_file import StoredModel, load_start, save_model
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.result import TrainResult
from longtail.flows.train.run_folder import check_folder, task_values, write_start
from longtail.flows.train.scores import second_stage, trained_scores
from longtail.flows.train.variants import variants_of

Progress: TypeAlias = Callable[[StepEnd | EpochEnd | str], None]
CarriedKind: TypeAlias = Literal["unknown", "uniform", "train", "other"]  # which prior


def train(
    recipe: Recipe | Mapping[str, object],
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    page: Callable[[TrainResult, Path], object] = lambda result, folder: None,
    progress: Progress = lambda event: None,
    command: str = "longtail.train",
) -> TrainResult:
    """Follow a recipe; what comes out is in the folder, and a run that broke off resumes there.

    Args:
        recipe: What to do: a value, or the keys and values of a recipe file.
        folder: Of the run; made if it is not there.
        name: What the recipe is called, which the folder keeps for comparisons.
        page: Writes a page on the result beside the other files, before they are put there:
            `longtail.report.save`.
        progress: Told of every step and epoch, and in a word of what comes after them.
        command: What the page says has made it.
    """
    run, recipe = Path(folder), recipe if isinstance(recipe, Recipe) else recipe_from(recipe)
    with processes() as these, locked(run) if these.is_main else nullcontext():
        check_folder(run, recipe)
        # Labels, counts, prior, loss and head: nothing that can be refused is refused later.
        setup = _set_up(recipe, these.device)
        images, model, normalize = setup.images, setup.model, setup.normalize
        if these.is_main:
            write_start(run, recipe, name, command)

        # Training: it leaves the model knowing what its logits carry.
        trained = training.train(
            model,
            images.train,
            setup.sampler,
            setup.loss,
            setup.options,
            normalize=normalize,
            augment=setup.augment,
            validation=images.validation,
            evaluate_every=recipe.evaluate_every,
            groups=recipe.groups,
            run=run,
            checkpoint_every=recipe.checkpoint_every,
            recipe=task_values(recipe),
            progress=progress,
            tensorboard=recipe.tensorboard,
        )

        # Scores: logits with their labels, and with the prior they carry.
        progress("scores")
        scores = trained_scores(recipe, setup)
        trained = trained._replace(carried=model.carried)  # by experts as they are weighted

        # Target: the same scores under the prior they are to be used under.
        variants = variants_of(recipe.target, model.carried, setup.target, scores)
        heads = second_stage(recipe, model, images, normalize, progress)

        # Metrics, and everything into the folder at once.
        counts = tuple(images.train.counts.tolist())
        stored = StoredModel(model, recipe, images.train.classes, counts, normalize)
        edges, every = GroupEdges.of(recipe.groups), (*variants, *heads)
        result = TrainResult(stored, run, setup.target, trained, every, command, edges)
        if these.is_main:
            with generation(run, "train") as aside:
                save_model(aside / MODEL, stored)
                result.write(aside)
                page(result, aside)
        return result


def _set_up(recipe: Recipe, device: torch.device) -> building.Setup:
    setup = building.set_up(recipe, device)
    load_start(setup.model, recipe)
    return setup


class TrainingPlan(NamedTuple):
    """The sizes of what a recipe makes of the data, and what its logits will carry."""

    training_images: int
    validation_images: int
    test_images: int
    classes: int
    largest_class: int  # training images
    smallest_class: int
    parameters: int
    steps_per_epoch: int
    steps: int
    carried: CarriedKind
    label_smoothing: float  # the prior is that of labels smoothed so
    terms: tuple[str, ...]  # beside the loss; they leave the prior as it is


def planned(recipe: Recipe) -> TrainingPlan:
    """What training would begin with, or the error that it would end with."""
    setup = _set_up(recipe, torch.device("cpu"))
    images, smoothing = setup.images, setup.loss.label_smoothing
    counts, steps = images.train.counts, -(-len(setup.sampler) // recipe.batch_size)
    return TrainingPlan(
        training_images=len(images.train),
        validation_images=0 if images.validation is None else len(images.validation),
        test_images=0 if images.test is None else len(images.test),
        classes=images.train.num_classes,
        largest_class=int(counts.max()),
        smallest_class=int(counts.min()),
        parameters=sum(weight.numel() for weight in setup.model.parameters()),
        steps_per_epoch=steps,
        steps=steps * recipe.epochs,
        carried=_kind(setup.carried, setup.prior.smoothed(smoothing)),
        label_smoothing=smoothing,
        terms=tuple(term.tag for term in recipe.terms),
    )


def _kind(carried: Prior | None, train: Prior) -> CarriedKind:
    if carried is None:
        return "unknown"
    if carried.is_close(Prior.uniform(train.num_classes)):
        return "uniform"
    return "train" if carried.is_close(train) else "other"
