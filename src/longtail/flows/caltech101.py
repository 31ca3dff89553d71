"""Caltech-101 features cut to a long tail: losses and adjusters, each at its own weight decay.

    labels → counts → prior → loss and head → scores → target → metrics

The weight decay is that of the least log-loss by cross-validation on the training part, every class
counting the same. Chosen for accuracy alone, the decay may be any that ranks the classes well, and
the stronger ones leave probabilities that are far too unsure.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.data import caltech101_long_tailed, stratified_folds
from longtail.engine import fit_linear
from longtail.losses import Loss
from longtail.metrics import evaluate, nll
from longtail.posthoc import Adjuster

_TOLERANCE = 3e-5  # float32 features allow little less


class FeatureMethod(NamedTuple):
    """A loss to train with, and what is done to the scores, given the prior trained under."""

    name: str
    loss: Callable[[Prior], Loss]
    adjuster: Callable[[Prior], Adjuster] | None = None


class FeatureExperiment(NamedTuple):
    """What is compared.

    Attributes:
        methods: One row of the table each.
        weight_decays: From strong to weak: each fit starts from the one before.
        folds: Of the cross-validation.
    """

    methods: tuple[FeatureMethod, ...]
    weight_decays: tuple[float, ...]
    folds: int

    @property
    def losses(self) -> list[Callable[[Prior], Loss]]:
        """Each loss of the methods once."""
        return list(dict.fromkeys(method.loss for method in self.methods))

    @property
    def steps(self) -> int:
        """How often `compare_on_caltech` tells of progress."""
        return len(self.losses) * self.folds * len(self.weight_decays) + len(self.methods)


class FeatureScores(NamedTuple):
    """A method on the test part.

    Attributes:
        name: What it is called.
        weight_decay: The one that cross-validation chose.
        scores: Of the test part, with the prior they were trained for or moved to.
        metrics: What `evaluate` says of them on the test part as it is.
    """

    name: str
    weight_decay: float
    scores: Scores
    metrics: dict[str, float | None]


class _Fold(NamedTuple):
    """Scores of one validation part by weight decay, and the prior of what they were fitted on."""

    loss: Callable[[Prior], Loss]
    scores: dict[float, Scores]
    prior: Prior


def compare_on_caltech(
    experiment: FeatureExperiment,
    seed: int,
    workers: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[FeatureScores, ...]:
    """Cross-validate, fit again and test; `progress` is called `experiment.steps` times."""
    data = caltech101_long_tailed()
    train = as_tensor(data.train_features), as_tensor(data.train_labels)
    test = as_tensor(data.test_features), as_tensor(data.test_labels)
    prior = Prior.from_labels(train[1], num_classes=len(data.classes))
    number = as_tensor(stratified_folds(train[1], experiment.folds, seed))

    def validated(job: tuple[Callable[[Prior], Loss], int]) -> _Fold:
        """One loss on one fold at every weight decay."""
        make, at = job
        rest, out = number != at, number == at
        some = Prior.from_labels(train[1][rest], len(data.classes))
        loss, layer, scores = make(some), None, {}
        for decay in experiment.weight_decays:
            layer = _fitted(train[0][rest], train[1][rest], loss, decay, layer)
            logits, labels = layer(train[0][out]), train[1][out]
            scores[decay] = Scores(logits, labels, loss.carried, split="validation")
            progress()
        return _Fold(make, scores, some)

    def tested(method: FeatureMethod) -> FeatureScores:
        decay = min(experiment.weight_decays, key=lambda decay: _log_loss(method, decay, folds))
        loss = method.loss(prior)
        scores = Scores(
            _fitted(*train, loss, decay)(test[0]),
            labels=test[1],
            carried=loss.carried,
            counts=prior.counts,
            classes=data.classes,
            split="test",
        )
        scores = _adjusted(method, scores, prior)
        progress()
        return FeatureScores(method.name, decay, scores, evaluate(scores))

    with ThreadPoolExecutor(workers) as pool:
        jobs = [(loss, at) for loss in experiment.losses for at in range(experiment.folds)]
        folds = list(pool.map(validated, jobs))
        return tuple(pool.map(tested, experiment.methods))


def _fitted(
    features: Tensor, labels: Tensor, loss: Loss, decay: float, start: nn.Linear | None = None
) -> nn.Linear:
    return fit_linear(features, labels, loss, weight_decay=decay, start=start, tolerance=_TOLERANCE)


def _adjusted(method: FeatureMethod, scores: Scores, prior: Prior) -> Scores:
    return scores if method.adjuster is None else method.adjuster(prior)(scores)


def _log_loss(method: FeatureMethod, decay: float, folds: list[_Fold]) -> float:
    """Log-loss of the validation parts together, since a class of three has one in each.

    Every class counts the same.
    """
    parts = [
        _adjusted(method, fold.scores[decay], fold.prior)
        for fold in folds
        if fold.loss is method.loss
    ]
    logits = torch.cat([as_tensor(part.logits) for part in parts])
    labels = torch.cat([as_tensor(part.labels) for part in parts if part.labels is not None])
    return nll(logits, labels, 1 / labels.bincount()[labels])
