"""The scores of a run: as they were trained, and moved to the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.scores import Split
from longtail.data.images import ImageSplits, LabelledImages
from longtail.engine.augment import Normalize
from longtail.engine.training import Model, predict
from longtail.posthoc import LogitAdjustment, TauChoice
from longtail.recipes.training.optimizer_options import Target


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
    counts = images.train.counts
    return {
        split: scores_of(
            predict(model, part, normalize, num_workers=num_workers).logits,
            part,
            model.carried,
            counts,
            split,
        )
        for split, part in all_parts(images).items()
        if split != "train"
    }


class Move(NamedTuple):
    """How far scores are moved to the target, what moves them, and how τ was chosen if it was."""

    tau: float
    apply: Callable[[Scores], Scores]
    choice: TauChoice | None = None


def moved_to_target(
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


def all_parts(images: ImageSplits[Any]) -> dict[Split, LabelledImages]:
    """Train, and validation and test where they are."""
    parts: dict[Split, LabelledImages] = {"train": images.train}
    if images.validation is not None:
        parts["validation"] = images.validation
    if images.test is not None:
        parts["test"] = images.test
    return parts
