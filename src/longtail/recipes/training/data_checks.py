"""What is wrong with a recipe that only the data can tell: told before anything is trained."""

from __future__ import annotations

from typing import Any

import torch

from longtail.core import Prior
from longtail.data.images import ImageSplits, LabelledImages
from longtail.engine.training import Model
from longtail.images.augment import Normalize
from longtail.recipes.training.building import build_target
from longtail.recipes.training.checking import RecipeError
from longtail.recipes.training.recipe import Recipe


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
    """A RecipeError before training, if scores cannot be moved as the recipe says.

    Args:
        recipe: What to do.
        images: With the validation part that τ may be chosen on.
        prior: Of the training part.
        carried: What the logits will carry.
    """
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
