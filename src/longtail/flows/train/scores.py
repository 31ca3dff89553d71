"""The scores of a run: as they were trained, of weighted experts, and of second-stage heads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longtail import heads, losses
from longtail.core import Prior, Scores, retarget
from longtail.core.arrays import Floats
from longtail.core.scores import Split
from longtail.data.tables.features import SPLITS
from longtail.engine.averaging import reestimate_batch_norm
from longtail.engine.fit_head import fit_head
from longtail.engine.training import Model, predict
from longtail.flows.folds import cross_fitted, in_folds
from longtail.flows.samples import Mask
from longtail.flows.train.building import Setup, build_target
from longtail.flows.train.parts import SecondHead
from longtail.flows.train.recipe import BatchNorm, Recipe
from longtail.flows.train.variants import Variant, any_counts
from longtail.heads.starts import drawn_from
from longtail.images import SAMPLERS, ImageSplits, LabelledImages
from longtail.images.augment import Normalize
from longtail.posthoc import WeightNormalization, average, expert_weights

_BATCH = 256
_DRAWN_BY = {"reestimate": "instance", "reestimate_class_balanced": "class_balanced"}


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


def trained_scores(recipe: Recipe, setup: Setup) -> dict[Split, Scores]:
    """The scores of validation and test by the model, its experts weighted if asked for."""
    weighted = _weigh_experts(recipe, setup) if recipe.expert_weights == "validation" else {}
    logits: dict[Split, Tensor] = {
        split: predict(setup.model, part, setup.normalize, num_workers=recipe.num_workers).logits
        for split, part in all_parts(setup.images).items()
        if split != "train"
    }
    return scores_of(logits, setup.model.carried, setup.images) | weighted


def _weigh_experts(recipe: Recipe, setup: Setup) -> dict[Split, Scores]:
    """Give the experts the weights of the least log-loss on the validation part.

    What the weighted mean of their logits carries follows from what each of them carries. The
    scores are of validation samples, those of a fold by the weights that the others choose.
    """
    images, head, trained = setup.images, setup.model.head, setup.model.carried
    # The loss of the last epoch, terms and schedules aside.
    *_, loss = (each for each in setup.loss.modules() if isinstance(each, losses.Experts))
    assert isinstance(head, heads.Experts)  # the recipe says so
    assert trained is not None  # as of every expert
    validation = all_parts(images)["validation"]
    rows = predict(setup.model, validation, setup.normalize, num_workers=recipe.num_workers)
    logits = head.each(rows.features.to(head.rows.device)).detach().cpu()
    # A sampler that changes what the mean carries changes it for each expert alike.
    carried = [
        Prior.from_log(retarget(each.log, loss.carried, trained))
        for each in loss.experts_carried
        if each is not None
    ]
    experts = [
        scores_of({"validation": own}, prior, images)["validation"]
        for own, prior in zip(logits.unbind(dim=-1), carried, strict=True)
    ]

    def chosen(samples: Sequence[Scores]) -> Floats:
        if not any_counts(samples[0], setup.target):
            return np.full(len(samples), 1 / len(samples))
        return expert_weights(samples, setup.target, of="logits")

    weights = chosen(experts)
    mean = Prior.from_log(weights @ np.stack([prior.log for prior in carried]))
    head.weigh(weights)
    head.carry(mean)

    def predicted(rest: Mask, own: Mask) -> Scores:
        others = chosen([each.take(rest) for each in experts])
        return average([each.take(own) for each in experts], mean, "logits", others)

    return {"validation": in_folds(experts[0], predicted)}


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
    if stage.batch_norm != "keep":
        progress("batch-norm statistics")
        network = with_new_statistics(model, images.train, normalize, stage.batch_norm)
    progress("features")

    features = {
        split: predict(network, part, normalize, num_workers=recipe.num_workers).features
        for split, part in all_parts(images).items()
    }
    train, variants = features.pop("train"), []
    for option in stage.heads:
        progress(option.full_name)
        if option.tag == "tau_norm":
            target = build_target(recipe, Prior.of(images.train.counts))
            variants.append(_normalised(option, model.head, features, images, target))
            continue
        with drawn_from(torch.Generator().manual_seed(recipe.seed)):
            head = _fitted(option, model.head, train, images.train.labels, recipe.seed)
        logits = {split: head(rows).detach() for split, rows in features.items()}
        variants.append(Variant(option.full_name, scores_of(logits, head.carried, images), head))
    return variants


def _normalised(
    option: SecondHead,
    trained: heads.Head,
    features: Mapping[Split, Tensor],
    images: ImageSplits[Any],
    target: Prior,
) -> Variant:
    """The trained weights divided by a power of their norm; τ is given, or chosen on validation."""
    tau = option.values()["tau"]
    head = heads.TauNorm.from_linear(trained.to_linear().cpu(), tau=0.0 if tau == "auto" else tau)
    scores = scores_of({k: head(rows).detach() for k, rows in features.items()}, None, images)
    if tau != "auto":
        return Variant(option.full_name, scores, head)
    nu = head.log_nu(torch.float64).exp()

    def fitted(validation: Scores) -> WeightNormalization:
        if not any_counts(validation, target):
            return WeightNormalization(nu)
        return WeightNormalization.fit(validation, nu, target)

    move = fitted(scores["validation"])
    head.tau = move.tau
    moved = {split: move(part) for split, part in scores.items()}
    moved["validation"] = cross_fitted(scores["validation"], fitted)
    return Variant(option.full_name, moved, head)


def with_new_statistics(
    model: Model,
    images: LabelledImages,
    normalize: Normalize,
    batch_norm: BatchNorm = "reestimate",
) -> Model:
    """A copy of the model whose batch-norm statistics are those of these images (NCM A.4)."""
    changed = copy.deepcopy(model)
    device = next(changed.parameters()).device
    sampler = SAMPLERS[_DRAWN_BY[batch_norm]](images.labels, images.num_classes)
    order = sampler.order()

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
