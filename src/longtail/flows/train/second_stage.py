"""Heads fitted on the features of a trained backbone, which does not run again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import torch
from torch import Tensor

from longtail import heads
from longtail.data.images import ImageSplits, LabelledImages
from longtail.engine.augment import Normalize
from longtail.engine.averaging import reestimate_batch_norm
from longtail.engine.fit_head import fit_head
from longtail.engine.training import Model, predict
from longtail.flows.train.result import Variant
from longtail.flows.train.scores import all_parts, scores_of
from longtail.recipes.training import optimizer_options as options
from longtail.recipes.training.recipe import Recipe

_BATCH = 256


def second_stage(
    recipe: Recipe,
    model: Model,
    images: ImageSplits[Any],
    normalize: Normalize,
    progress: Callable[[str], None] = lambda what: None,
) -> list[Variant]:
    """The scores of each second-stage head, as they are: papers report these heads so.

    Args:
        recipe: With the heads, under names that say what they are.
        model: As trained, with the head that some start from.
        images: All parts.
        normalize: What images go through.
        progress: Told what comes next.
    """
    stage = recipe.second_stage
    if stage is None:
        return []
    network = model
    if stage.batch_norm == "reestimate":
        progress("batch-norm statistics")
        network = with_new_statistics(model, images.train, normalize)
    progress("features")

    def features_of(part: LabelledImages) -> Tensor:
        return predict(network, part, normalize, num_workers=recipe.num_workers).features

    parts, labels, seed = all_parts(images), images.train.labels, recipe.seed
    features = {split: features_of(part) for split, part in parts.items()}
    train = features.pop("train")
    variants = []
    for option in stage.heads:
        name = second_name(option)
        progress(name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = _fitted(option, model.head, train, labels, seed)
        scores = {
            split: scores_of(
                head(rows).detach(), parts[split], head.carried, images.train.counts, split
            )
            for split, rows in features.items()
        }
        variants.append(Variant(name, scores, head))
    return variants


def second_name(option: options.SecondHead) -> str:
    """What the head is called in the run folder: its name, and its options but the usual ones."""
    usual, given = (msgspec.structs.asdict(made) for made in (type(option)(), option))
    said = [f"-{key}-{value}" for key, value in given.items() if value != usual[key]]
    return str(option.__struct_config__.tag) + "".join(said)


def with_new_statistics(model: Model, images: LabelledImages, normalize: Normalize) -> Model:
    """A copy of the model whose batch-norm statistics are those of these images (NCM A.4)."""
    changed = copy.deepcopy(model)
    reestimate_batch_norm(changed.backbone, _batches(changed, images, normalize))
    return changed


def _batches(model: Model, images: LabelledImages, normalize: Normalize) -> Iterator[Tensor]:
    device = next(model.parameters()).device
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    for start in range(0, len(order), _BATCH):
        some = order[start : start + _BATCH].tolist()
        pixels = torch.stack([images[at][0] for at in some])
        yield normalize(pixels.to(device))


def _fitted(
    option: options.SecondHead,
    trained: heads.Head,
    features: Tensor,
    labels: Tensor,
    seed: int,
) -> heads.Head:
    dim, classes = trained.dim, trained.num_classes
    match option:
        case options.NearestClassMean():
            head: heads.Head = heads.NearestClassMean(dim, classes, option.metric)
        case options.LearnedNCM():
            return _learned(option.tau, dim, classes, features, labels, seed)
        case options.MultiNCM():
            learned = _learned(option.tau, dim, classes, features, labels, seed)
            head = heads.MultiNCM.from_learned(learned, option.num_displacements)
            fit_head(head, features, labels, recipe=replace(head.recipe, tau=option.tau), seed=seed)
            return head
        case options.Retrained():
            head = heads.Linear(dim, classes)
        case options.LearnableScale():
            head = heads.LearnableScale.from_linear(trained.to_linear().cpu())
    fit_head(head, features, labels, seed=seed)
    return head


def _learned(
    tau: float, dim: int, classes: int, features: Tensor, labels: Tensor, seed: int
) -> heads.LearnedNCM:
    head = heads.LearnedNCM(dim, classes)
    fit_head(head, features, labels, recipe=replace(head.recipe, tau=tau), seed=seed)
    return head
