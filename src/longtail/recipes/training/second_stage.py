"""Heads fitted on the features of a trained backbone, which does not run again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from longtail import heads
from longtail.data.images import LabelledImages
from longtail.engine.averaging import reestimate_batch_norm
from longtail.engine.fit_head import fit_head
from longtail.engine.training import Model
from longtail.images.augment import Normalize
from longtail.recipes.training.parts import SecondHead
from longtail.recipes.training.recipe import SecondStage

_BATCH = 256


def fit_second_heads(
    stage: SecondStage,
    trained: heads.Head,
    features: Tensor,
    labels: Tensor,
    seed: int,
    tick: Callable[[str], None] = lambda name: None,
) -> dict[str, heads.Head]:
    """Every head of the stage, under a name that says what it is.

    Args:
        stage: Which heads.
        trained: The head of stage one, for those that start from it.
        features: Of the training images.
        labels: Of the training images.
        seed: Of batches and of what is drawn.
        tick: Told the name of the head that comes next.
    """
    made: dict[str, heads.Head] = {}
    for option in stage.heads:
        name = second_name(option)
        tick(name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made[name] = _fitted(option, trained, features, labels, seed)
    return made


def second_name(option: SecondHead) -> str:
    """What the head is called in the run folder: its name, and its options but the usual ones."""
    usual = type(option)().values()
    said = [f"-{key}-{value}" for key, value in option.values().items() if value != usual[key]]
    return option.tag + "".join(said)


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
    option: SecondHead,
    trained: heads.Head,
    features: Tensor,
    labels: Tensor,
    seed: int,
) -> heads.Head:
    sizes = {"dim": trained.dim, "num_classes": trained.num_classes}
    if option.tag == "lws":
        head: heads.Head = heads.LearnableScale.from_linear(trained.to_linear().cpu())
    elif option.tag == "multi_ncm":  # it starts where the learned means end
        learned = heads.LearnedNCM(**sizes)
        _fit(learned, option, features, labels, seed)
        head = heads.MultiNCM.from_learned(learned, option.values()["num_displacements"])
    else:
        head = option.build(**sizes)
    _fit(head, option, features, labels, seed)
    return head


def _fit(head: heads.Head, option: SecondHead, features: Tensor, labels: Tensor, seed: int) -> None:
    tau = option.values().get("tau")
    sgd = None if tau is None or head.sgd is None else replace(head.sgd, tau=tau)
    fit_head(head, features, labels, sgd=sgd, seed=seed)
