"""The scores of a run: as they were trained, and of second-stage heads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from longtail import heads
from longtail.core import Prior, Scores
from longtail.core.scores import Split
from longtail.data.tables.features import SPLITS
from longtail.engine.averaging import reestimate_batch_norm
from longtail.engine.fit_head import fit_head
from longtail.engine.training import Model, predict
from longtail.flows.train.parts import SecondHead
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.result import Variant
from longtail.heads.starts import drawn_from
from longtail.images import ImageSplits, LabelledImages
from longtail.images.augment import Normalize

_BATCH = 256


def all_parts(images: ImageSplits[Any]) -> dict[Split, LabelledImages]:
    """Train, and validation and test where they are."""
    parts = zip(SPLITS, (images.train, images.validation, images.test), strict=True)
    return {split: part for split, part in parts if part is not None}


def scores_of(
    logits: Mapping[Split, Tensor], carried: Prior | None, images: ImageSplits[Any]
) -> dict[Split, Scores]:
    """Logits of some parts with their labels, what they carry, and the training counts."""
    counts, classes, parts = images.train.counts, images.train.classes, all_parts(images)
    return {
        split: Scores(rows, parts[split].labels, carried, counts, classes, split)
        for split, rows in logits.items()
    }


def second_stage(
    recipe: Recipe,
    model: Model,
    images: ImageSplits[Any],
    normalize: Normalize,
    progress: Callable[[str], None] = lambda what: None,
) -> list[Variant]:
    """The scores of each second-stage head, as they are: papers report these heads so."""
    stage = recipe.second_stage
    if stage is None:
        return []
    network = model
    if stage.batch_norm == "reestimate":
        progress("batch-norm statistics")
        network = with_new_statistics(model, images.train, normalize)
    progress("features")

    features = {
        split: predict(network, part, normalize, num_workers=recipe.num_workers).features
        for split, part in all_parts(images).items()
    }
    train, variants = features.pop("train"), []
    for option in stage.heads:
        progress(option.full_name)
        with drawn_from(torch.Generator().manual_seed(recipe.seed)):
            head = _fitted(option, model.head, train, images.train.labels, recipe.seed)
        logits = {split: head(rows).detach() for split, rows in features.items()}
        variants.append(Variant(option.full_name, scores_of(logits, head.carried, images), head))
    return variants


def with_new_statistics(model: Model, images: LabelledImages, normalize: Normalize) -> Model:
    """A copy of the model whose batch-norm statistics are those of these images (NCM A.4)."""
    changed = copy.deepcopy(model)
    device = next(changed.parameters()).device
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))

    def batches() -> Iterator[Tensor]:
        for some in torch.split(order, _BATCH):
            pixels = torch.stack([images[at][0] for at in some.tolist()])
            yield normalize(pixels.to(device))

    reestimate_batch_norm(changed.backbone, batches())
    return changed


def _fitted(
    option: SecondHead, trained: heads.Head, features: Tensor, labels: Tensor, seed: int
) -> heads.Head:
    sizes = {"dim": trained.dim, "num_classes": trained.num_classes}
    tau = option.values().get("tau")

    def fitted(head: heads.Head) -> heads.Head:
        sgd = None if tau is None or head.sgd is None else replace(head.sgd, tau=tau)
        fit_head(head, features, labels, sgd=sgd, seed=seed)
        return head

    if option.tag == "lws":
        return fitted(heads.LearnableScale.from_linear(trained.to_linear().cpu()))
    if option.tag == "multi_ncm":  # about centres that were trained without adjustment (NCM §4.4)
        learned = heads.LearnedNCM(**sizes)
        fit_head(learned, features, labels, seed=seed)
        return fitted(heads.MultiNCM.from_learned(learned, option.values()["num_displacements"]))
    return fitted(option.build(**sizes))
