"""Why a recipe does not fit how long it trains, and on what: its epochs, and FSDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtail.flows.train.recipe import Recipe


def of_fsdp(recipe: Recipe) -> Iterator[str]:
    """What a network that is shared out over processes cannot have."""
    if recipe.parallel == "fsdp" and recipe.loss.tag == "estimated_offset":
        yield (
            "the loss estimated_offset looks at the weights of the head, of which a process has "
            "only a part with fsdp: set parallel=ddp"
        )
    if recipe.parallel == "fsdp" and recipe.head.values().get("learn_scale"):
        yield (
            "head.learn_scale learns a single number, which fsdp does not share out: set "
            "parallel=ddp, or head.learn_scale=false"
        )


def of_epochs(recipe: Recipe) -> Iterator[str]:
    """Why the schedule, deferred re-weighting and terms do not fit the epochs."""
    schedule, epochs, drw = recipe.schedule.values(), recipe.epochs, recipe.drw
    peak, warmup = schedule.get("peak", 0), schedule.get("warmup", 0)
    milestones = list(schedule.get("milestones", ()))
    if peak >= epochs:
        yield (
            f"schedule.peak is epoch {peak:g}, but the last one is {epochs}: set it "
            "lower, or as a share of all epochs, such as 0.25"
        )
    if warmup >= epochs:
        yield f"schedule.warmup takes {warmup} epochs, but there are {epochs}: set it lower"
    if milestones != sorted(set(milestones)):
        yield f"milestones must rise, got {milestones}"
    if milestones and warmup > milestones[0]:
        first = milestones[0]
        yield f"the warm-up of {warmup} epochs must be over by the first milestone, {first}"
    if drw is not None and drw.start >= epochs:
        yield (
            f"drw.start is epoch {drw.start}, but there are {epochs} epochs: start earlier, or set "
            "drw=null"
        )
    for term in recipe.terms:
        if (start := term.values()["start"]) >= epochs:
            yield (
                f"the term {term.tag} starts in epoch {start}, but there are {epochs} epochs: "
                "start earlier, or leave it out"
            )
    if drw is not None and drw.resample and recipe.sampler.tag != "instance":
        yield (
            "drw.resample says how often to draw each class, and so does the sampler "
            f"{recipe.sampler.tag}: take one of them"
        )
