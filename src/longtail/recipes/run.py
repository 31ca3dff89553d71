"""The whole flow on one page: from labels to a report.

    labels → counts → prior → loss and head → scores → target → metrics → report

Logits carry a prior: that of the loss and the sampler they were trained with. Everything after
training moves them from there to the prior they are to be used under.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from longtail.core import Prior
from longtail.core.locks import locked
from longtail.engine.training import EpochEnd, StepEnd, processes, train
from longtail.flows.generation import generation
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.recipes.training import building
from longtail.recipes.training.data_checks import check_network, check_target
from longtail.recipes.training.model_file import MODEL, StoredModel, save_model
from longtail.recipes.training.reading_data import read_data
from longtail.recipes.training.recipe import Recipe
from longtail.recipes.training.results import RunResult, Variant
from longtail.recipes.training.run_folder import task_values, write_start
from longtail.recipes.training.run_page import write_results
from longtail.recipes.training.run_scores import adjusted, scores_of_parts, second_stage_scores

Watch = Callable[[StepEnd | EpochEnd | str], None]


def run_recipe(
    recipe: Recipe, folder: Path, watch: Watch = lambda event: None, name: str = ""
) -> RunResult:
    """Follow a recipe; what comes out is in the folder, which a broken run goes on from.

    Args:
        recipe: What to do.
        folder: Of the run; made if it is not there.
        watch: Told of every step and epoch, and in a word of what comes after them.
        name: What the recipe is called, which the folder keeps for comparisons.
    """
    with processes() as these, locked(folder) if these.is_main else nullcontext():
        # Labels, counts, prior: what the training images say before anything is trained.
        images = read_data(recipe.data)
        counts = images.train.counts
        prior = Prior.of(counts)

        # Loss and head: the loss is for the prior that the batches follow, sampler included.
        sampler = building.build_sampler(recipe, images.train)
        model = building.build_model(recipe, prior).to(these.device)
        batches = building.batches_prior(sampler, prior)
        loss = building.build_loss(recipe, batches, model.head)
        check_target(recipe, images, prior, building.carried(loss, model.head))

        # Training: it leaves the model knowing what its logits carry.
        options, augment = building.build_options(recipe), building.build_augment(recipe)
        normalize = building.build_normalize(recipe, images.train)
        check_network(model, images.train, normalize)
        if these.is_main:
            write_start(folder, recipe, name)
        trained = train(
            model,
            images.train,
            sampler,
            loss.to(these.device),
            options,
            normalize=normalize,
            augment=augment,
            validation=images.validation,
            evaluate_every=recipe.evaluate_every,
            run=folder,
            checkpoint_every=recipe.checkpoint_every,
            recipe=task_values(recipe),
            log=watch,
            tensorboard=recipe.tensorboard,
        )

        # Scores: logits with their labels, and with the prior they carry.
        watch("scores")
        scores = scores_of_parts(model, images, normalize, recipe.num_workers)

        # Target: the same scores under the prior they are to be used under.
        target = building.build_target(recipe, prior)
        move = adjusted(recipe.target, model.carried, target, scores.get("validation"))
        variants = [Variant(AS_TRAINED, scores)]
        if move is not None:
            moved = {split: move.move(part) for split, part in scores.items()}
            variants.append(Variant(UNDER_TARGET, moved, None, move.tau, move.choice))
        variants += second_stage_scores(recipe, model, images, normalize, watch)

        # Metrics and report.
        rows = model.head.rows.detach().cpu()
        result = RunResult(
            recipe, folder, images.train.classes, counts, target, trained, variants, rows
        )
        if these.is_main:
            stored = StoredModel(model, recipe, result.classes, tuple(counts.tolist()), normalize)
            with generation(folder, "train") as aside:
                save_model(aside / MODEL, stored)
                write_results(result, aside)
        return result
