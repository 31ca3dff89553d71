"""The whole of `longtail fit`: choose on held-out samples, fit on all, compare, keep the best."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.engine import Features, save_head
from longtail.heads import Head, Linear
from longtail.metrics import Accumulator, Interval, paired_gain
from longtail.posthoc import PCSoftmax, fold
from longtail.recipes.fit_choice import DecaySearch, Predicted, judged, linear_layer, predicted
from longtail.recipes.fit_methods import METHODS, SLOW, Aim, Method, Task
from longtail.recipes.fit_parts import Pair, check_parts, feature_unit, in_memory, pairs
from longtail.recipes.fit_result import Criterion, FitPlan, FitResult, MethodResult

_FEW = 5


def run_fit(
    features: Features, plan: FitPlan, tick: Callable[[str], None] = lambda what: None
) -> FitResult:
    """Fit, choose and compare; `tick` is told what comes next."""
    check_parts(features)
    names = _names(plan.methods)
    target = Prior.uniform(features.num_classes) if plan.target is None else plan.target
    aim = Aim(target, "nll" if plan.criterion == "nll" else "accuracy_under_target")
    unit = feature_unit(features)
    halves = pairs(features, plan.folds, plan.seed, unit)
    tick("weight decay")
    search = DecaySearch(halves, target)
    train = in_memory(features, "train", unit)
    with _quiet(plan.seed):
        place, layers = search.best(lambda: tick("weight decay"))
        decay = search.decay(place)
        layer, prior = linear_layer(*train, features.num_classes, decay, layers[0])
    tasks = [
        Task(half, Prior.from_labels(half.labels, features.num_classes), each, decay, plan.seed)
        for half, each in zip(halves, layers, strict=True)
    ]
    nothing = (train[0][:0], train[1][:0])
    whole = Task(Pair(*train, None, *nothing, None), prior, layer, decay, plan.seed)
    test = in_memory(features, "test", unit) if "test" in features.parts else None
    judge = _Judge(halves, aim, features.counts)
    found = []
    for name in names:
        tick(METHODS[name].title)
        found.append(_compared(name, tasks, whole, halves, test, judge))
    ranked = sorted(found, key=lambda each: _rank(each.result, plan.criterion))
    best, first = ranked[0].result, ranked[0]
    if first.head is None:
        raise ValueError(f"no method could be fitted; the first one failed: {best.failed}")
    held = torch.bincount(judge.labels, minlength=features.num_classes)
    linear = next((each for each in ranked if each.result.name == "linear" and each.head), first)
    validation = _scores(first.held, judge.labels, features, "validation")
    return FitResult(
        methods=[
            replace(each.result, behind=judge.gain(each.right, first.right)) for each in ranked
        ],
        best=best.name,
        head=_to_keep(METHODS[best.name], first.head, target, unit),
        plan=plan,
        target=target,
        counts=features.counts,
        classes=features.classes,
        # A weight that is divided by the unit weighs its square less.
        weight_decay=decay * unit**2,
        decays={search.decay(at) * unit**2: loss for at, loss in search.losses.items()},
        at_the_end=place in (min(search.losses), max(search.losses)),
        few=int((held < _FEW).sum()),
        unjudged=int((held == 0).sum()),
        judged_on=(
            "the validation part"
            if "validation" in features.parts
            else f"{plan.folds} folds of the train part, each by what was fitted on the others"
        ),
        validation=validation,
        test=None if test is None else _scores(first.tested, test[1], features, "test"),
        linear=_scores(linear.held, judge.labels, features, "validation")
        if test is None
        else _scores(linear.tested, test[1], features, "test"),
    )


def write_fit(result: FitResult, output: Path) -> None:
    """Write the model and its scores into a folder that nothing is in yet."""
    about = {
        "method": result.best,
        "classes": result.classes,
        "counts": result.counts.tolist(),
        "target": result.target.probs.tolist(),
    }
    save_head(result.head, output / "model.safetensors", about)
    result.validation.save(output / "validation.safetensors")
    if result.test is not None:
        result.test.save(output / "test.safetensors")


def _to_keep(method: Method, head: Head, target: Prior, unit: float) -> Head:
    """The head for features as they are in the file; where it can be, with the target in it."""
    if head.carried is not None and not method.is_as_is(target) and head.carried != target:
        try:
            layer = fold(head.to_linear(), PCSoftmax(target), carried=head.carried)
        except ValueError:
            pass  # no linear layer: its logits stay, and it says what they carry
        else:
            head = Linear.from_linear(layer, carried=target)
    head.measure_in(unit)
    return head.train(False)


class _Judge:
    """Held-out samples of all pairs together, and the linear layer as what to compare with."""

    def __init__(self, halves: Sequence[Pair], aim: Aim, counts: np.ndarray) -> None:
        self.labels = torch.cat([half.held_labels for half in halves])
        self.aim, self.target, self.counts = aim, aim.target, counts
        self.linear = torch.zeros(0, dtype=torch.bool)  # which it has right; it is judged first

    def metrics(self, logits: Tensor, labels: Tensor) -> tuple[dict[str, Interval], Tensor]:
        """All metrics, and which samples were right."""
        classes = self.target.num_classes
        seen = torch.bincount(labels, minlength=classes)
        sums = Accumulator(classes, self.target, self.counts, label_counts=seen)
        right = torch.from_numpy(sums.add(logits, labels).right)
        return sums.metrics(), right

    def gain(self, before: Tensor, after: Tensor) -> Interval:
        """Of accuracy under the target, paired; none for a method that failed."""
        if not len(before):
            return Interval(None)
        return paired_gain(before, after, self.labels, self.target)


class _Found(NamedTuple):
    """A method that was judged: its head fitted on all, and what it predicts."""

    result: MethodResult
    head: Head | None
    held: Predicted
    tested: Predicted
    right: Tensor


def _compared(
    name: str,
    tasks: list[Task],
    whole: Task,
    halves: Sequence[Pair],
    test: tuple[Tensor, Tensor] | None,
    judge: _Judge,
) -> _Found:
    """Fit a method on every pair, judge it, and fit it on all."""
    method, start = METHODS[name], perf_counter()
    nothing = Predicted(torch.zeros(0), None)
    try:
        with _quiet(whole.seed):
            heads = [method.fit(task) for task in tasks]
            parts, value = judged(method, heads, tasks, halves, judge.aim)
        with _quiet(whole.seed):
            head = method.fit(whole)
    except (ValueError, RuntimeError) as error:
        none, took = Interval(None), perf_counter() - start
        failed = MethodResult(name, {}, None, none, none, None, took, str(error))
        return _Found(failed, None, nothing, nothing, torch.zeros(0, dtype=torch.bool))
    if method.tuned is not None and value is not None:
        head = method.tuned.put(head, whole, value, judge.aim)
    took = perf_counter() - start
    # Each fold carries the prior of its own train part; only the target is common to all.
    common = len(parts) == 1 or all(part.carried == judge.target for part in parts)
    held = Predicted(
        torch.cat([part.logits for part in parts]), parts[0].carried if common else None
    )
    held_out, right = judge.metrics(held.logits, judge.labels)
    if name == "linear":
        judge.linear = right
    tested, metrics = nothing, None
    if test is not None:
        tested = predicted(method, head, test[0], judge.target)
        metrics, _ = judge.metrics(tested.logits, test[1])
    gain = judge.gain(judge.linear, right)
    result = MethodResult(name, held_out, metrics, gain, gain, value, took)
    return _Found(result, head, held, tested, right)


def _rank(found: MethodResult, criterion: Criterion) -> float:
    """Lower is better; what failed comes last."""
    if found.failed:
        return float("inf")
    value = found.held_out[criterion].value
    assert value is not None
    return value if criterion == "nll" else -value


def _names(asked: Sequence[str]) -> list[str]:
    unknown = [name for name in asked if name not in METHODS]
    if unknown:
        raise ValueError(f"there is no method {unknown[0]!r}; there are {', '.join(METHODS)}")
    chosen = [name for name in METHODS if name in asked or (not asked and name not in SLOW)]
    return ["linear", *(name for name in chosen if name != "linear")]


def _scores(
    held: Predicted, labels: Tensor, features: Features, split: Literal["validation", "test"]
) -> Scores:
    return Scores(
        held.logits,
        labels,
        carried=held.carried,
        counts=features.counts,
        classes=features.classes,
        split=split,
    )


@contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """The same random numbers for every method, and torch's own left as they are."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # near enough is enough to compare
        torch.manual_seed(seed)
        yield
