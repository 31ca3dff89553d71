"""fit: classifiers on features of a frozen backbone, chosen on validation samples, compared, kept.

samples → weight decay → every method → the best → scores and model
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longtail.core import GroupEdges, GroupsLike, Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike, as_numpy
from longtail.core.numbers import check_seed
from longtail.core.prior import check_same_classes
from longtail.data import Features
from longtail.flows import file_names, fit_methods, fit_samples
from longtail.flows.fit_methods import METHODS, UNLABELLED, Aim
from longtail.flows.fit_problem import Problem, prepared
from longtail.flows.fit_result import Criterion, FitResult, MethodScores
from longtail.flows.fit_samples import FeaturesLike, Labelled
from longtail.flows.fit_unlabelled import Right, is_worth, unlabelled_features
from longtail.flows.results import staged
from longtail.heads import Head, Linear
from longtail.metrics import Accumulator, Interval, paired_gain
from longtail.posthoc import PCSoftmax, fold

_FEW = 5  # validation samples, below which a class's share of an interval is borrowed from others
_Target: TypeAlias = PriorLike | Literal["uniform", "train"]


def fit(
    features: FeaturesLike,
    labels: ArrayLike | None = None,
    validation: Labelled | None = None,
    *,
    test: Labelled | None = None,
    unlabelled: FeaturesLike | None = None,
    classes: Sequence[str] | None = None,
    target: _Target = "uniform",
    methods: Sequence[str] = (),
    criterion: Criterion = "accuracy_under_target",
    folds: int = 5,
    groups: GroupsLike | None = None,
    seed: int = 0,
    output: str | os.PathLike[str] | None = None,
    page: Callable[[FitResult, Path], object] = lambda result, folder: None,
    progress: Callable[[str], None] = lambda what: None,
    command: str = "longtail.fit",
) -> FitResult:
    """Fit classifiers on features of a frozen backbone, compare them, and keep the best.

    Weight decay, τ and the method are chosen on the validation part, or where there is none on
    folds of the train part; the best is fitted again on all of the train part.

    Args:
        features: Of shape (N, D), NumPy or torch; or a feature file, which holds the rest.
        labels: Their classes, by number or name; sorted names become the classes.
        validation: Features and labels to choose by.
        test: Features and labels that decide nothing.
        unlabelled: Features of other samples, which follow the target: two methods learn from them
            too. Labels they may have are not looked at.
        classes: The names of the classes.
        target: The prior to predict under.
        methods: Names in METHODS; none for all that need not be named.
        criterion: What the best method is the best by: accuracy under the target, which for the
            uniform one is balanced accuracy, that itself, or log-loss.
        folds: How many parts the train part is cut into where there is no validation part.
        groups: The edges of many, medium and few, such as "many=100,few=20,inclusive".
        seed: Decides folds and whatever is drawn.
        output: A folder for model.safetensors, scores and metrics.json, made if it is not there;
            what another command wrote there is refused.
        page: Writes a page on the result beside the other files: `longtail.report.save`.
        progress: Told what comes next.
        command: What metrics.json and the page say has made them.

    >>> rows = torch.randn(90, 4, generator=torch.Generator().manual_seed(0))
    >>> result = fit(rows, [0] * 60 + [1] * 20 + [2] * 10, methods=["adjusted"], folds=2)
    >>> sorted(each.name for each in result.table), result.model.num_classes
    (['adjusted', 'linear'], 3)
    """
    check_seed(seed)
    names = fit_methods.method_names(methods, unlabelled is not None)
    if criterion not in get_args(Criterion):
        raise ValueError(
            f"criterion must be one of {', '.join(get_args(Criterion))}, got {criterion!r}"
        )
    data = fit_samples.labelled_features(features, labels, validation, test, classes)
    goal, edges = _target(target, data), GroupEdges.of(groups)
    others = None if unlabelled is None else unlabelled_features(unlabelled, data)
    files = (each for each in (features, unlabelled) if isinstance(each, str | os.PathLike))
    inputs = list(map(Path, files))
    with staged(output, "fit", file_names.FIT, inputs) as folder:
        # The weight decay: one for all methods, that of a linear layer trained by cross-entropy.
        aim = Aim(goal, "nll" if criterion == "nll" else "accuracy_under_target")
        problem = prepared(data, aim, folds, seed, progress, others)

        # Every method: judged by what was fitted on the folds, then fitted on all of the train
        # part; then the best on validation samples, and how far the others are behind.
        rows: list[_Fitted | MethodScores] = []
        for name in names:
            progress(METHODS[name].title)
            rows.append(_fit_method(name, problem, edges))

        ranked, table = _ranked(rows, criterion, problem)
        result = _result(problem, ranked, table, criterion, edges, command)
        if folder is not None:
            result.write(folder)
            page(result, folder)
        return result


class _Part(NamedTuple):
    """Scores of a part, their metrics, and which samples were right."""

    scores: Scores
    metrics: dict[str, Interval]
    right: npt.NDArray[np.bool_]


class _Fitted(NamedTuple):
    """A method that was fitted on all of the train part, and what it says of the other parts."""

    name: str
    seconds: float
    head: Head
    tau: float | None
    validation: _Part
    test: _Part | None


def _fit_method(name: str, problem: Problem, edges: GroupEdges) -> _Fitted | MethodScores:
    """Fit a method on every fold, judge it, and fit it on all; or the row that says why not."""
    start, target = perf_counter(), problem.aim.target
    try:
        parts, tau = problem.predicted_folds(name)
        head = problem.fitted(name, tau)
    except (ValueError, RuntimeError) as error:
        none, seconds, title = Interval(None), perf_counter() - start, METHODS[name].title
        return MethodScores(name, title, {}, None, none, none, None, seconds, str(error))
    seconds = perf_counter() - start
    # Each fold carries the prior of its own train part; only the target is common to all.
    common = len(parts) == 1 or all(part.carried == target for part in parts)
    logits = torch.cat([part.logits for part in parts])
    joined = Scores(logits, carried=parts[0].carried if common else None)
    scores, tested = problem.labelled(joined, problem.labels, "validation"), None
    validation = _part(scores, target, edges)
    if (predicted := problem.tested(name, head)) is not None:
        tested = _part(predicted, target, edges)
    return _Fitted(name, seconds, head, tau, validation, tested)


def best_of(right: Mapping[str, Right], labels: Tensor, target: Prior) -> str:
    """Which method is kept, by the samples each is right on, the most accurate first.

    One that learns from unlabelled samples is kept only if it is worth it.
    """
    plain = next((name for name in right if name not in UNLABELLED), next(iter(right)))
    return next(
        name
        for name, own in right.items()
        if name == plain or is_worth(right[plain], own, labels, target)
    )


def _ranked(
    rows: Sequence[_Fitted | MethodScores], criterion: Criterion, problem: Problem
) -> tuple[list[_Fitted], tuple[MethodScores, ...]]:
    """The methods that could be fitted, best first; and the table, those that could not last."""
    fitted = [each for each in rows if isinstance(each, _Fitted)]
    failed = [each for each in rows if isinstance(each, MethodScores)]
    if not fitted:
        raise ValueError(f"no method could be fitted; the first one failed: {failed[0].error}")

    def rank(each: _Fitted) -> float:
        value = each.validation.metrics[criterion].value
        assert value is not None  # there are validation samples
        return value if criterion == "nll" else -value

    ranked, labels, target = sorted(fitted, key=rank), problem.labels, problem.aim.target
    if criterion != "nll":
        right = {each.name: each.validation.right for each in ranked}
        chosen = best_of(right, labels, target)
        ranked.sort(key=lambda each: each.name != chosen)
    linear = fitted[0] if fitted[0].name == "linear" else None

    def gain(before: _Fitted | None, after: _Fitted) -> Interval:
        if before is None:
            return Interval(None)
        return paired_gain(before.validation.right, after.validation.right, labels, target=target)

    table = [
        MethodScores(
            each.name,
            METHODS[each.name].title,
            each.validation.metrics,
            None if each.test is None else each.test.metrics,
            gain(linear, each),
            gain(each, ranked[0]),
            each.tau,
            each.seconds,
        )
        for each in ranked
    ]
    return ranked, (*table, *failed)


def _result(
    problem: Problem,
    ranked: Sequence[_Fitted],
    table: tuple[MethodScores, ...],
    criterion: Criterion,
    edges: GroupEdges,
    command: str,
) -> FitResult:
    """The best method beside the linear layer, and what they were chosen by."""
    data, goal, choice, best = problem.data, problem.aim.target, problem.choice, ranked[0]
    others = problem.whole.unlabelled
    shown = next((each for each in ranked if each.name == "linear"), best)
    judged = torch.bincount(problem.labels, minlength=data.num_classes)
    unit = problem.samples.unit**2  # a weight for features divided by the unit weighs that less
    return FitResult(
        model=_to_keep(METHODS[best.name], best.head, goal, problem.samples.unit),
        table=table,
        validation=best.validation.scores,
        test=None if best.test is None else best.test.scores,
        linear=(shown.validation if shown.test is None else shown.test).scores,
        target=goal,
        criterion=criterion,
        counts=data.counts,
        classes=data.classes,
        weight_decay=choice.decay * unit,
        decays={decay * unit: loss for decay, loss in choice.losses.items()},
        folds=None if "validation" in data.parts else len(problem.tasks),
        few=int((judged < _FEW).sum()),
        unjudged=int((judged == 0).sum()),
        edges=edges,
        unlabelled=0 if others is None else len(others.features),
        seed=problem.whole.seed,
        command=command,
    )


def _part(scores: Scores[Tensor], target: Prior, edges: GroupEdges) -> _Part:
    sums = Accumulator.of(scores, target, scores.counts, groups=edges)
    return _Part(scores, sums.metrics(), as_numpy(scores.predict()) == as_numpy(scores.labels))


def _target(target: _Target, data: Features) -> Prior:
    counts = data.counts
    if isinstance(target, str):
        if target not in ("uniform", "train"):
            raise ValueError(f"target must be 'uniform', 'train' or a prior, got {target!r}")
        return Prior.uniform(len(counts)) if target == "uniform" else Prior.of(counts)
    prior = Prior.of(target, zeros="keep", classes=data.classes)
    check_same_classes(len(counts), prior, "the features have", "the target")
    if not all(prior.probs > 0):
        raise ValueError("the target has a weight of zero; every class needs one above zero")
    return prior


def _to_keep(method: fit_methods.Method, head: Head, target: Prior, unit: float) -> Head:
    """The head for features as they came; where it can be, with the target in it."""
    if head.carried is not None and not method.keeps_logits(target) and head.carried != target:
        try:
            layer = fold(head.to_linear(), PCSoftmax(target), carried=head.carried)
        except ValueError:
            pass  # no linear layer: its logits stay, and it says what they carry
        else:
            head = Linear.from_linear(layer, carried=target)
    head.set_feature_scale(unit)
    return head.train(False)
