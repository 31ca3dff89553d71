"""The scores of a run: as they were trained, moved to the target, and of second-stage heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.scores import Split
from longtail.data.images import ImageSplits, LabelledImages
from longtail.engine.training import Model, predict
from longtail.images.augment import Normalize
from longtail.posthoc import LogitAdjustment, TauChoice
from longtail.recipes.training.recipe import Recipe, Target
from longtail.recipes.training.results import Variant
from longtail.recipes.training.second_stage import fit_second_heads, with_new_statistics


def scores_of(
    logits: Tensor,
    images: LabelledImages,
    carried: Prior | None,
    counts: Tensor,
    split: Split,
) -> Scores:
    """Logits with their labels, what they carry, and the training counts."""
    return Scores(
        logits,
        labels=images.labels,
        carried=carried,
        counts=counts,
        classes=images.classes,
        split=split,
    )


def scores_of_parts(
    model: Model, images: ImageSplits[Any], normalize: Normalize, num_workers: int = 0
) -> dict[Split, Scores]:
    """What the model says of validation and test, where they are."""
    made: dict[Split, Scores] = {}
    for split, part in _parts(images).items():
        logits = predict(model, part, normalize, num_workers=num_workers).logits
        made[split] = scores_of(logits, part, model.carried, images.train.counts, split)
    return made


class Move(NamedTuple):
    """What moves scores to the target, how far (the τ of it), and how that was chosen if it was."""

    tau: float
    move: Callable[[Scores], Scores]
    choice: TauChoice | None = None


def adjusted(
    option: Target, carried: Prior | None, target: Prior, validation: Scores | None
) -> Move | None:
    """What moves scores to the target; None if they carry it, or nobody knows what they carry."""
    if carried is None or (carried.is_close(target) and option.tau != "auto"):
        return None
    if option.tau == "auto":
        assert validation is not None  # checked before training
        fitted = LogitAdjustment(carried, target=target).fit(validation, option.criterion)
        return Move(fitted.tau, fitted, fitted.choice)
    if option.tau == 1:
        return Move(1.0, lambda scores: scores.under(target))
    return Move(option.tau, LogitAdjustment(carried, option.tau, target))


def second_stage_scores(
    recipe: Recipe,
    model: Model,
    images: ImageSplits[Any],
    normalize: Normalize,
    watch: Callable[[str], None],
) -> Iterator[Variant]:
    """The scores of each second-stage head, as they are: papers report these heads so."""
    stage = recipe.second_stage
    if stage is None:
        return
    network = model
    if stage.batch_norm == "reestimate":
        watch("batch-norm statistics")
        network = with_new_statistics(model, images.train, normalize)
    watch("features")
    workers = recipe.num_workers
    features = predict(network, images.train, normalize, num_workers=workers).features
    parts = _parts(images)
    others = {
        split: predict(network, part, normalize, num_workers=workers).features
        for split, part in parts.items()
    }
    made = fit_second_heads(stage, model.head, features, images.train.labels, recipe.seed, watch)
    for name, head in made.items():
        yield Variant(
            name,
            {
                split: scores_of(
                    head(rows).detach(), parts[split], head.carried, images.train.counts, split
                )
                for split, rows in others.items()
            },
            head,
        )


def _parts(images: ImageSplits[Any]) -> dict[Split, LabelledImages]:
    """Validation and test, where they are."""
    both: dict[Split, LabelledImages | None] = {
        "validation": images.validation,
        "test": images.test,
    }
    return {split: part for split, part in both.items() if part is not None}
