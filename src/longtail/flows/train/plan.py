"""What a run would be, with everything built and nothing trained."""

from __future__ import annotations

from typing import Any

from longtail.core import Prior
from longtail.flows.train import building
from longtail.flows.train.reading_data import read_data
from longtail.flows.train.recipe import Recipe


def planned(recipe: Recipe) -> dict[str, Any]:
    """Sizes of what the recipe makes of the data, or the error that training would begin with."""
    images = read_data(recipe.data)
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
