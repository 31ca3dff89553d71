"""train: the whole flow on one page, from labels to metrics; and what it would be, untrained.

    labels → counts → prior → loss and head → scores → target → metrics

Logits carry a prior: that of the loss and the sampler they were trained with. Everything after
training moves them from there to the prior they are to be used under.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor

from longtail.core import Prior
from longtail.core.files import locked
from longtail.core.scores import Split
from longtail.engine import training
from longtail.engine.training import EpochEnd, StepEnd, processes
from longtail.flows.generation import generation
from longtail.flows.train import building
from longtail.flows.train.model_file import MODEL, StoredModel, save_model
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.result import TrainResult, variants_of
from longtail.flows.train.run_folder import check_folder, task_values, write_start
from longtail.flows.train.scores import all_parts, scores_of, second_stage

Progress: TypeAlias = Callable[[StepEnd | EpochEnd | str], None]


def train(
    recipe: Recipe,
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    page: Callable[[TrainResult, Path], object] = lambda result, folder: None,
    progress: Progress = lambda event: None,
    command: str = "longtail.train",
) -> TrainResult:
    """Follow a recipe; what comes out is in the folder, and a run that broke off goes on there.

    Args:
        recipe: What to do.
        folder: Of the run; made if it is not there.
        name: What the recipe is called, which the folder keeps for comparisons.
        page: Writes a page on the result beside the other files, before they are put there:
            `longtail.report.save`.
        progress: Told of every step and epoch, and in a word of what comes after them.
        command: What the page says has made it.
    """
    run = Path(folder)
    check_folder(run, recipe)
    with processes() as these, locked(run) if these.is_main else nullcontext():
        # Labels, counts, prior: what the training images say before anything is trained.
        images = building.read_data(recipe.data)
        counts = images.train.counts
        prior = Prior.of(counts)

        # Loss and head: the loss is for the prior that the batches follow, sampler included.
        sampler = building.build_sampler(recipe, images.train)
        model = building.build_model(recipe, prior).to(these.device)
        batches = sampler.induced(prior)
        loss = building.build_loss(recipe, batches, model.head)
        building.check_target(recipe, images, prior, building.carried(loss, model.head))

        # Training: it leaves the model knowing what its logits carry.
        options, augment = building.build_options(recipe), building.build_augment(recipe)
        normalize = building.build_normalize(recipe, images.train)
        building.check_network(model, images.train, normalize)
        if these.is_main:
            write_start(run, recipe, name)
        trained = training.train(
            model,
            images.train,
            sampler,
            loss.to(these.device),
            options,
            normalize=normalize,
            augment=augment,
            validation=images.validation,
            evaluate_every=recipe.evaluate_every,
            run=run,
            checkpoint_every=recipe.checkpoint_every,
            recipe=task_values(recipe),
            progress=progress,
            tensorboard=recipe.tensorboard,
        )

        # Scores: logits with their labels, and with the prior they carry.
        progress("scores")
        logits: dict[Split, Tensor] = {
            split: training.predict(model, part, normalize, num_workers=recipe.num_workers).logits
            for split, part in all_parts(images).items()
            if split != "train"
        }
        scores = scores_of(logits, model.carried, images)

        # Target: the same scores under the prior they are to be used under.
        target = building.build_target(recipe, prior)
        variants = variants_of(recipe.target, model.carried, target, scores)
        heads = second_stage(recipe, model, images, normalize, progress)

        # Metrics, and everything into the folder at once.
        stored = StoredModel(model, recipe, images.train.classes, tuple(counts.tolist()), normalize)
        result = TrainResult(stored, run, target, trained, (*variants, *heads), command)
        if these.is_main:
            with generation(run, "train") as aside:
                save_model(aside / MODEL, stored)
                result.write(aside)
                page(result, aside)
        return result


def planned(recipe: Recipe) -> dict[str, Any]:
    """Sizes of what the recipe makes of the data, or the error that training would begin with."""
    images = building.read_data(recipe.data)
    prior = Prior.of(images.train.counts)
    model = building.build_model(recipe, prior)
    sampler = building.build_sampler(recipe, images.train)
    loss = building.build_loss(recipe, sampler.induced(prior), model.head)
    carried = building.carried(loss, model.head)
    building.check_target(recipe, images, prior, carried)
    building.build_options(recipe)
    building.build_augment(recipe)
    building.check_network(model, images.train, building.build_normalize(recipe, images.train))
    steps = -(-len(sampler) // recipe.batch_size)
    counts = images.train.counts
    return {
        "training images": len(images.train),
        "validation images": 0 if images.validation is None else len(images.validation),
        "test images": 0 if images.test is None else len(images.test),
        "classes": images.train.num_classes,
        "largest class": int(counts.max()),
        "smallest class": int(counts.min()),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "steps an epoch": steps,
        "steps": steps * recipe.epochs,
        "the logits will carry": _in_words(carried, prior, loss.label_smoothing),
    }


def _in_words(carried: Prior | None, train: Prior, label_smoothing: float) -> str:
    if carried is None:
        return "no known prior"
    of = f" of labels smoothed by {label_smoothing:g}" if label_smoothing else ""
    if carried.is_close(Prior.uniform(train.num_classes)):
        return f"the uniform prior{of}"
    if carried.is_close(train.smoothed(label_smoothing)):
        return f"the training prior{of}"
    return f"a prior between these or beyond{of}"
