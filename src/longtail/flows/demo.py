"""demo: two problems that show why logit adjustment works and what it costs.

    labels → counts → prior → loss and head → scores → target → metrics

One is two Gaussians. The other is Caltech-101 features cut to a long tail: losses and adjusters,
each at its own weight decay, that of the least log-loss by cross-validation on the training part,
every class counting the same. Chosen for accuracy alone, the decay may be any that ranks the
classes well, and the stronger ones leave probabilities that are far too unsure.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import nn

from longtail.core import Prior, Scores
from longtail.core.tensors import as_tensor
from longtail.data import caltech101_long_tailed, stratified_folds
from longtail.engine import fit_linear
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result
from longtail.flows.two_gaussians import GaussianExperiment, TwoGaussians, run_trials
from longtail.losses import Loss
from longtail.metrics import evaluate, nll
from longtail.posthoc import Adjuster

_TOLERANCE = 3e-5  # float32 features allow little less


class FeatureMethod(NamedTuple):
    """A loss to train with, and what is done to the scores, given the prior trained under."""

    name: str
    loss: Callable[[Prior], Loss]
    adjuster: Callable[[Prior], Adjuster] | None = None

    def adjusted(self, scores: Scores, prior: Prior) -> Scores:
        """The scores as the method leaves them."""
        return scores if self.adjuster is None else self.adjuster(prior)(scores)


class FeatureExperiment(NamedTuple):
    """What is compared on features of pictures."""

    methods: tuple[FeatureMethod, ...]  # one row of the table each
    weight_decays: tuple[float, ...]  # from strong to weak: each fit starts from the one before
    folds: int  # of the cross-validation

    @property
    def losses(self) -> list[Callable[[Prior], Loss]]:
        """Each loss of the methods once."""
        return list(dict.fromkeys(method.loss for method in self.methods))

    @property
    def steps(self) -> int:
        """How often `compare_on_caltech` tells of progress."""
        return len(self.losses) * self.folds * len(self.weight_decays) + len(self.methods)


class FeatureScores(NamedTuple):
    """A method on the test part, at the weight decay that cross-validation chose."""

    name: str
    weight_decay: float
    scores: Scores  # with the prior they were trained for or moved to
    metrics: dict[str, float | None]


@dataclass(frozen=True, eq=False)
class DemoResult(Result):
    """The results of both problems."""

    gaussians: TwoGaussians
    caltech: tuple[FeatureScores, ...]  # cross-entropy first and the logit-adjusted loss last
    command: str

    kind: ClassVar[str] = "demo"

    @cached_property
    def judgement(self) -> Judgement:
        """The pictures by cross-entropy and by the logit-adjusted loss."""
        before, after = self.caltech[0], self.caltech[-1]
        uniform = Prior.uniform(before.scores.num_classes)
        return judge(before.scores, after.scores, uniform, names=(before.name, after.name))

    def change(self, metric: str) -> tuple[float, float]:
        """A metric of the pictures, by cross-entropy and by the logit-adjusted loss."""
        first, last = (self.caltech[at].metrics[metric] for at in (0, -1))
        return first or 0.0, last or 0.0

    @property
    def gain(self) -> float:
        """Balanced accuracy that the logit-adjusted loss gains over cross-entropy."""
        before, after = self.change("balanced_accuracy")
        return after - before

    def as_json(self) -> dict[str, Any]:
        """The tables as plain values."""
        both = self.gaussians
        rows = [row._asdict() for row in (*both.losses, *both.corrections)]
        return {
            "two_gaussians": {"bayes": both.bayes, "trials": both.trials, "methods": rows},
            "caltech101": [
                {"method": each.name, "weight_decay": each.weight_decay, **each.metrics}
                for each in self.caltech
            ],
        }


def demo(
    gaussians: GaussianExperiment,
    caltech: FeatureExperiment,
    trials: int = 100,
    seed: int = 0,
    progress: Callable[[Literal["gaussians", "caltech"]], None] = lambda problem: None,
    command: str = "longtail demo",
) -> DemoResult:
    """Both problems, several fits at a time; `progress` gets the name of each that ends."""
    workers, threads = min(4, os.cpu_count() or 1), torch.get_num_threads()
    torch.set_num_threads(1)  # the problems are small: one thread each
    try:
        return DemoResult(
            run_trials(gaussians, trials, seed, workers, lambda: progress("gaussians")),
            compare_on_caltech(caltech, seed, workers, lambda: progress("caltech")),
            command,
        )
    finally:
        torch.set_num_threads(threads)


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
    features, labels = as_tensor(data.train_features), as_tensor(data.train_labels)
    test_features, test_labels = as_tensor(data.test_features), as_tensor(data.test_labels)
    num_classes, fitted = len(data.classes), partial(fit_linear, tolerance=_TOLERANCE)
    prior = Prior.from_labels(labels, num_classes)
    number = as_tensor(stratified_folds(labels, experiment.folds, seed))

    def validated(job: tuple[Callable[[Prior], Loss], int]) -> _Fold:
        """One loss on one fold at every weight decay."""
        make, at = job
        rest, out = number != at, number == at
        some = Prior.from_labels(labels[rest], num_classes)
        loss, scores = make(some), {}
        layer: nn.Linear | None = None
        for decay in experiment.weight_decays:
            layer = fitted(features[rest], labels[rest], loss, weight_decay=decay, start=layer)
            logits = layer(features[out])
            scores[decay] = Scores(logits, labels[out], loss.carried, split="validation")
            progress()
        return _Fold(make, scores, some)

    def tested(method: FeatureMethod) -> FeatureScores:
        decay = min(experiment.weight_decays, key=lambda decay: _log_loss(method, decay, folds))
        loss = method.loss(prior)
        logits = fitted(features, labels, loss, weight_decay=decay)(test_features)
        scores = Scores(logits, test_labels, loss.carried, prior.counts, data.classes, "test")
        scores = method.adjusted(scores, prior)
        progress()
        return FeatureScores(method.name, decay, scores, evaluate(scores))

    with ThreadPoolExecutor(workers) as pool:
        jobs = [(loss, at) for loss in experiment.losses for at in range(experiment.folds)]
        folds = list(pool.map(validated, jobs))
        return tuple(pool.map(tested, experiment.methods))


def _log_loss(method: FeatureMethod, decay: float, folds: list[_Fold]) -> float:
    """Of the validation parts together, since a class of three has one in each; classes alike."""
    own = [fold for fold in folds if fold.loss is method.loss]
    parts = [method.adjusted(fold.scores[decay], fold.prior) for fold in own]
    logits = torch.cat([as_tensor(part.logits) for part in parts])
    labels = torch.cat([as_tensor(part.labels) for part in parts if part.labels is not None])
    return nll(logits, labels, 1 / labels.bincount()[labels])
