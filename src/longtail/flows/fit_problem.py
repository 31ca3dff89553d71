"""What every method of a fit is fitted on, with the weight decay that was chosen for all of them.

The weight decay is that of a linear layer trained by cross-entropy (`fit_samples`).

A method's τ is chosen on each fold's validation part; a part is judged with the median of the
others'. A single part is cut into five for that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from longtail.core import Scores
from longtail.core.scores import Split
from longtail.core.tensors import as_tensor
from longtail.data import Features, stratified_folds
from longtail.flows import fit_methods, fit_samples
from longtail.flows.fit_methods import METHODS, Aim, Method, Task, Tuned, predicted
from longtail.flows.fit_samples import DecayChoice, FitSamples, Samples
from longtail.flows.fit_unlabelled import Unlabelled
from longtail.heads import Head
from longtail.heads.starts import drawn_from

_CUTS = 5


class Problem(NamedTuple):
    """What every method is fitted on and judged by."""

    data: Features
    samples: FitSamples
    choice: DecayChoice
    tasks: list[Task]  # one a fold
    whole: Task
    labels: Tensor  # of the validation parts of all folds
    aim: Aim

    def predicted_folds(self, name: str) -> tuple[list[Scores[Tensor]], float | None]:
        """What a method predicts for every validation part, and the τ for all samples."""
        judged_by = [each.validation for each in self.samples.folds]
        with _seeded(self.whole.seed):
            return _predicted_folds(METHODS[name], self.tasks, judged_by, self.aim)

    def fitted(self, name: str, tau: float | None) -> Head:
        """A method fitted on all of the train part."""
        method = METHODS[name]
        with _seeded(self.whole.seed):
            if method.tuned is None or tau is None:
                return method.fit(self.whole)
            return method.tuned.head(self.whole, self.aim, tau)

    def labelled(self, outputs: Scores[Tensor], labels: Tensor, split: Split) -> Scores[Tensor]:
        """The scores of a part with what is known of it."""
        data = self.data
        return Scores(outputs.logits, labels, outputs.carried, data.counts, data.classes, split)

    def tested(self, name: str, head: Head) -> Scores[Tensor] | None:
        """What a fitted method predicts by for the test part; None without one."""
        test = self.samples.test
        if test is None:
            return None
        scores = predicted(METHODS[name], head, test.features, self.aim.target)
        return self.labelled(scores, test.labels, "test")


def _predicted_folds(
    method: Method, tasks: Sequence[Task], parts: Sequence[Samples], aim: Aim
) -> tuple[list[Scores[Tensor]], float | None]:
    """What is predicted for every validation part, and the τ for the fit on all samples."""
    tau, tuned = None, method.tuned
    if tuned is None:
        fitted = [method.fit(task) for task in tasks]
    elif len(parts) == 1:
        return _predicted_in_cuts(method, tuned, tasks[0], parts[0], aim)
    else:
        taus = [
            tuned.best(task, aim, task.layer(part.features), part.labels)
            for task, part in zip(tasks, parts, strict=True)
        ]
        tau, others = median(taus), [median(taus[:k] + taus[k + 1 :]) for k in range(len(taus))]
        fitted = [tuned.head(task, aim, each) for task, each in zip(tasks, others, strict=True)]
    return [
        predicted(method, head, part.features, aim.target)
        for head, part in zip(fitted, parts, strict=True)
    ], tau


def _predicted_in_cuts(
    method: Method, tuned: Tuned, task: Task, part: Samples, aim: Aim
) -> tuple[list[Scores[Tensor]], float]:
    """Each cut of a single validation part with the τ that the rest of it chose."""
    features, labels = part.features, part.labels
    plain = task.layer(features)
    cut = as_tensor(stratified_folds(labels, min(_CUTS, len(labels)), task.seed))
    logits, carried = torch.zeros_like(plain), None
    for number in range(int(cut.max()) + 1):
        rest = cut != number
        head = tuned.head(task, aim, tuned.best(task, aim, plain[rest], labels[rest]))
        scores = predicted(method, head, features[~rest], aim.target)
        logits[~rest], carried = scores.logits, scores.carried
    return [Scores(logits, carried=carried)], tuned.best(task, aim, plain, labels)


def prepared(
    data: Features,
    aim: Aim,
    folds: int,
    seed: int,
    progress: Callable[[str], None] = lambda what: None,
    unlabelled: Tensor | None = None,
) -> Problem:
    """Samples, their folds, and the weight decay; unlabelled ones follow the target."""
    samples = fit_samples.fit_samples(data, folds, seed)
    others = None
    if unlabelled is not None:
        others = Unlabelled(unlabelled / samples.unit, aim.target)
    progress("weight decay")
    with _seeded(seed):
        tell = partial(progress, "weight decay")
        choice = fit_samples.choose_decay(samples.folds, aim.target, tell)
        whole = fit_samples.linear_layer(
            samples.train, data.num_classes, choice.decay, choice.layers[0]
        )
    parts = zip((part.train for part in samples.folds), choice.layers, strict=True)
    return Problem(
        data,
        samples,
        choice,
        tasks=[Task(part, layer, choice.decay, seed, others) for part, layer in parts],
        whole=Task(samples.train, whole, choice.decay, seed, others),
        labels=torch.cat([part.validation.labels for part in samples.folds]),
        aim=aim,
    )


def scores_by_method(
    problem: Problem,
    methods: Sequence[str] = (),
    progress: Callable[[str], None] = lambda what: None,
) -> Iterator[tuple[str, Scores[Tensor] | Exception]]:
    """What each method predicts by for the test part, or why it cannot be fitted.

    The scores of `fit`, without choosing the best: only τ is looked for on folds.
    """
    for name in fit_methods.method_names(methods):
        progress(METHODS[name].title)
        try:
            tau = None if METHODS[name].tuned is None else problem.predicted_folds(name)[1]
            scores = problem.tested(name, problem.fitted(name, tau))
        except (ValueError, RuntimeError) as error:
            yield name, error
        else:
            if scores is None:
                raise ValueError("these features have no test part to predict for; pack one")
            yield name, scores


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The same random numbers for every method, and torch's own left as they are."""
    with drawn_from(torch.Generator().manual_seed(seed)), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # near enough is enough to compare
        yield
