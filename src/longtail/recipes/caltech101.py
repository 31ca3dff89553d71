"""Caltech-101 features cut to a long tail: cross-entropy, post-hoc adjustment, adjusted loss.

labels → counts → prior → loss and head → scores → target → metrics. Each method has its own weight
decay: that of the least log-loss by cross-validation on the training part, every class counting the
same. Chosen for accuracy alone, the decay may be any that ranks the classes well, and the stronger
ones leave probabilities that are far too unsure.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.data import LabelledFeatures, caltech101_long_tailed, stratified_folds
from longtail.engine import fit_linear
from longtail.losses import CrossEntropy, LogitAdjusted, Loss
from longtail.metrics import evaluate, nll
from longtail.metrics.samples import weights_to
from longtail.posthoc import LogitAdjustment

WEIGHT_DECAYS = (
    1e-2,
    3e-3,
    1e-3,
    3e-4,
    1e-4,
    3e-5,
)  # from strong to weak: each starts from the last
FOLDS = 3  # the smallest class has three images
LOSSES: dict[str, Callable[[Prior], Loss]] = {
    "cross-entropy": CrossEntropy,
    "logit-adjusted": LogitAdjusted,
}
TICKS = len(LOSSES) * FOLDS * len(WEIGHT_DECAYS) + 3
# float32 features allow little less.
_TOLERANCE = 3e-5


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes:
        name: What it is called.
        weight_decay: The one that cross-validation chose.
        scores: Of the test set, with the prior they were trained for or moved to.
        metrics: What `evaluate` says of them on the test set as it is.
    """

    name: str
    weight_decay: float
    scores: Scores
    metrics: dict[str, float | None]


@dataclass(frozen=True)
class _Plan:
    """A loss to train with and what to do with the scores, given the prior trained under."""

    name: str
    loss: str
    finish: Callable[[Scores, Prior], Scores]


# Scores of a fold and the prior its model was trained under.
_HeldOut: TypeAlias = tuple[Scores, Prior]

PLANS = (
    _Plan("cross-entropy", "cross-entropy", lambda scores, _: scores),
    _Plan(
        "post-hoc adjustment",
        "cross-entropy",
        lambda scores, prior: LogitAdjustment(prior)(scores),
    ),
    _Plan("logit-adjusted loss", "logit-adjusted", lambda scores, _: scores),
)


def run(seed: int, workers: int = 1, tick: Callable[[], None] = lambda: None) -> list[Method]:
    """Cross-validate, refit and test; `tick` is called TICKS times."""
    data = caltech101_long_tailed()
    prior = Prior.from_labels(data.train_labels, num_classes=len(data.classes))
    folds = as_tensor(stratified_folds(data.train_labels, FOLDS, seed))

    def held_out(job: tuple[str, int]) -> dict[tuple[str, float], _HeldOut]:
        name, fold = job
        return {
            (name, decay): part for decay, part in _path(data, folds == fold, LOSSES[name], tick)
        }

    def finished(plan: _Plan) -> Method:
        decay = min(WEIGHT_DECAYS, key=lambda decay: _log_loss(plan, decay, parts))
        scores = plan.finish(_test_scores(data, LOSSES[plan.loss](prior), prior, decay), prior)
        tick()
        return Method(plan.name, decay, scores, evaluate(scores))

    with ThreadPoolExecutor(workers) as pool:
        jobs = [(name, fold) for name in LOSSES for fold in range(FOLDS)]
        parts = list(pool.map(held_out, jobs))
        return list(pool.map(finished, PLANS))


def _path(
    data: LabelledFeatures,
    held_out: Tensor,
    make: Callable[[Prior], Loss],
    tick: Callable[[], None],
) -> Iterator[tuple[float, _HeldOut]]:
    """The held-out scores at every weight decay, each model starting from the one before."""
    features, labels = data.train_features[~held_out], data.train_labels[~held_out]
    prior = Prior.from_labels(labels, len(data.classes))
    loss, layer = make(prior), None
    for decay in WEIGHT_DECAYS:
        layer = fit_linear(
            features, labels, loss, weight_decay=decay, start=layer, tolerance=_TOLERANCE
        )
        logits = layer(data.train_features[held_out])
        scores = Scores(logits, data.train_labels[held_out], loss.carried, split="validation")
        tick()
        yield decay, (scores, prior)


def _log_loss(plan: _Plan, decay: float, parts: list[dict[tuple[str, float], _HeldOut]]) -> float:
    """Log-loss of the held-out parts together, since a class of three has one in each."""
    scores = [plan.finish(*part[plan.loss, decay]) for part in parts if (plan.loss, decay) in part]
    logits = torch.cat([as_tensor(part.logits) for part in scores])
    labels = torch.cat([as_tensor(part.labels) for part in scores if part.labels is not None])
    return nll(logits, labels, weights_to(Prior.uniform(logits.shape[1]), labels))


def _test_scores(data: LabelledFeatures, loss: Loss, prior: Prior, decay: float) -> Scores:
    layer = fit_linear(
        data.train_features,
        data.train_labels,
        loss,
        weight_decay=decay,
        tolerance=_TOLERANCE,
    )
    return Scores(
        layer(data.test_features),
        labels=data.test_labels,
        carried=loss.carried,
        counts=as_tensor(prior.counts),
        classes=data.classes,
        split="test",
    )
