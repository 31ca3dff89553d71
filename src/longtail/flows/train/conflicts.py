"""Why the parts of a recipe do not go together, each with what to set instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from longtail.flows.train import parts

if TYPE_CHECKING:
    from longtail.flows.train.recipe import Recipe


def conflicts_of(recipe: Recipe) -> Iterator[str]:
    """One conflict after the other; each may count on those before it to be settled."""
    return chain(_of_parts(recipe), _of_experts(recipe), _of_fsdp(recipe), _of_epochs(recipe))


def _of_parts(recipe: Recipe) -> Iterator[str]:
    """Why loss, head, second stage and mixup do not go together."""
    loss, head = recipe.loss, recipe.head
    if "estimated_offset" in (loss.tag, head.tag) and loss.tag != head.tag:
        yield (
            "the loss estimated_offset moves the centres of the head estimated_offset, and they "
            "need each other: set head=estimated_offset loss=estimated_offset"
        )
    if loss.tag == "ldam":
        options = loss.values()
        scale = options["scale"] if options["scale_in"] == "head" else 1.0
        if head.tag != "cosine" or head.values() != {"scale": scale, "learn_scale": False}:
            yield (
                f"the loss ldam with scale_in={options['scale_in']} is for cosines times "
                f"{scale:g}: set head=cosine and head.scale={scale:g}, with head.learn_scale=false"
            )
    scaling = [each for each in ("lws", "tau_norm") if each in _second_heads(recipe)]
    if scaling and head.tag in ("cosine", "causal_norm"):
        yield (
            f"the second-stage head {scaling[0]} scales the rows of a linear head, which cosine "
            "and causal_norm are not: leave it out, or set head=linear"
        )
    if "tau_norm" in scaling and head.values().get("use_offset"):
        yield (
            "the second-stage head tau_norm has rows alone, and the offset of the head "
            "estimated_offset would be lost: leave it out, or set head.use_offset=false"
        )
    if recipe.mixup is not None and (recipe.terms or loss.tag in parts.HARD_LABELS_ONLY):
        yield (
            "mixup makes soft labels, which terms, and losses on features or whole batches, cannot "
            "take: set mixup=null"
        )


def _second_heads(recipe: Recipe) -> list[str]:
    return [] if recipe.second_stage is None else [each.tag for each in recipe.second_stage.heads]


def _of_experts(recipe: Recipe) -> Iterator[str]:
    """The loss, the head and the network of experts go together, and are of one number."""
    loss, head = recipe.loss, recipe.head
    taus = len(loss.values()["taus"]) if loss.tag == "experts" else None
    experts = head.values()["num_experts"] if head.tag == "experts" else None
    if taus != experts:
        yield (
            "the loss experts, with a tau for each, and the head experts, with as many "
            "num_experts, need each other: set both, such as loss.taus=[0,1,2] head.num_experts=3"
        )
    of_backbone = recipe.backbone.values().get("num_experts", experts)
    if of_backbone != experts:
        yield f"the backbone has {of_backbone} experts: set head=experts loss=experts with as many"
    if recipe.expert_weights != "equal" and not experts:
        yield "expert_weights are those of experts: set head=experts loss=experts, or leave it out"
    if experts and _second_heads(recipe):
        yield "second-stage heads start from one head, not from experts: set second_stage=null"


def _of_fsdp(recipe: Recipe) -> Iterator[str]:
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


def _of_epochs(recipe: Recipe) -> Iterator[str]:
    """Why the schedule, early sizes, deferred re-weighting and terms do not fit the epochs."""
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
    ends = [early.until for early in recipe.early_sizes]
    if ends != sorted(set(ends)):
        yield f"until must rise along early_sizes, got {ends}"
    if ends and ends[-1] >= epochs:
        yield (
            f"early_sizes last until epoch {ends[-1]}, but there are {epochs} epochs: the last of "
            "them are for images of their own size; end earlier, or leave them out"
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
