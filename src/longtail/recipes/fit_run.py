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
from longtail.heads import Head
from longtail.metrics import Measured, Tally, paired_gain
from longtail.recipes.fit_choice import DecaySearch, linear_layer, predicted, tuned_heads
from longtail.recipes.fit_methods import METHODS, SLOW, Task
from longtail.recipes.fit_parts import Pair, check_parts, in_memory, pairs
from longtail.recipes.fit_result import Criterion, FitPlan, FitResult, MethodResult


def run_fit(
    features: Features, plan: FitPlan, tick: Callable[[str], None] = lambda what: None
) -> FitResult:
    """Fit, choose and compare; `tick` is told what comes next."""
    check_parts(features)
    names = _names(plan.methods)
    target = Prior.uniform(features.num_classes) if plan.target is None else plan.target
    halves = pairs(features, plan.folds, plan.seed)
    tick("weight decay")
    search = DecaySearch(halves, features.num_classes, target)
    decay, layers = search.best(lambda: tick("weight decay"))
    tasks = [
        Task(
            half.features,
            half.labels,
            Prior.from_labels(half.labels, features.num_classes),
            layer,
            decay,
            plan.seed,
        )
        for half, layer in zip(halves, layers, strict=True)
    ]
    train = in_memory(features.part("train"))
    layer, prior = linear_layer(*train, features.num_classes, decay, layers[0])
    whole = Task(*train, prior, layer, decay, plan.seed)
    test = in_memory(features.part("test")) if "test" in features.parts else None
    judge = _Judge(halves, target, features.counts)
    found = []
    for name in names:
        tick(METHODS[name].title)
        found.append(_compared(name, tasks, whole, halves, test, judge))
    ranked = sorted(found, key=lambda each: _rank(each.result, plan.criterion))
    best, first = ranked[0].result, ranked[0]
    if first.head is None:
        raise ValueError(f"no method could be fitted; the first one failed: {best.failed}")
    return FitResult(
        methods=[
            replace(each.result, behind=judge.gain(each.right, first.right)) for each in ranked
        ],
        best=best.name,
        head=first.head,
        plan=plan,
        target=target,
        counts=features.counts,
        classes=features.classes,
        weight_decay=decay,
        decays={search.decay(place): loss for place, loss in search.losses.items()},
        judged_on=(
            "the validation part"
            if "validation" in features.parts
            else f"{plan.folds} folds of the train part, each by what was fitted on the others"
        ),
        validation=_scores(first.held, judge.labels, features, "validation"),
        test=None
        if test is None
        else _scores(
            predicted(METHODS[best.name], first.head, test[0], target), test[1], features, "test"
        ),
    )


def write_fit(result: FitResult, output: Path) -> None:
    """Write the model and its scores."""
    about = {
        "method": result.best,
        "classes": result.classes,
        "counts": result.counts.tolist(),
        "target": result.target.probs.tolist(),
        "as_is": METHODS[result.best].as_is,
    }
    save_head(result.head, output / "model.safetensors", about)
    result.validation.save(output / "validation.safetensors")
    if result.test is not None:
        result.test.save(output / "test.safetensors")


class _Judge:
    """Held-out samples of all pairs together, and the linear layer as what to compare with."""

    def __init__(self, halves: Sequence[Pair], target: Prior, counts: np.ndarray) -> None:
        self.labels = torch.cat([half.held_labels for half in halves])
        self.target, self.counts = target, counts
        self.linear = torch.zeros(0, dtype=torch.bool)  # which it has right; it is judged first

    def metrics(self, logits: Tensor, labels: Tensor) -> tuple[dict[str, Measured], Tensor]:
        """All metrics, and which samples were right."""
        seen = torch.bincount(labels, minlength=self.target.num_classes)
        tally = Tally(seen, self.target, self.counts)
        right = tally.add(logits, labels)
        return tally.metrics(), right

    def gain(self, before: Tensor, after: Tensor) -> Measured:
        """Of balanced accuracy, paired; none for a method that failed."""
        if not len(before):
            return Measured(None)
        return paired_gain(before, after, self.labels, self.target.num_classes)


class _Found(NamedTuple):
    """A method that was judged: its head fitted on all, its held-out logits and what they carry."""

    result: MethodResult
    head: Head | None
    held: tuple[Tensor, Prior | None]
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
    try:
        with _quiet(whole.seed):
            heads, value = tuned_heads(method, [method.fit(task) for task in tasks], tasks, halves)
        with _quiet(whole.seed):
            head = method.fit(whole)
    except ValueError as error:
        none, took = Measured(None), perf_counter() - start
        failed = MethodResult(name, {}, None, none, none, None, took, str(error))
        return _Found(failed, None, (torch.zeros(0), None), torch.zeros(0, dtype=torch.bool))
    if method.tuned is not None and value is not None:
        head = method.tuned.put(head, whole, value)
    took = perf_counter() - start
    parts = [
        predicted(method, head, half.held_features, judge.target)
        for head, half in zip(heads, halves, strict=True)
    ]
    logits = torch.cat([part[0] for part in parts])
    held_out, right = judge.metrics(logits, judge.labels)
    if name == "linear":
        judge.linear = right
    tested = None
    if test is not None:
        tested, _ = judge.metrics(predicted(method, head, test[0], judge.target)[0], test[1])
    # Each fold carries the prior of its own train part; only the target is common to all.
    carried = judge.target if all(part[1] == judge.target for part in parts) else None
    gain = judge.gain(judge.linear, right)
    result = MethodResult(name, held_out, tested, gain, gain, value, took)
    return _Found(result, head, (logits, carried), right)


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
    held: tuple[Tensor, Prior | None],
    labels: Tensor,
    features: Features,
    split: Literal["validation", "test"],
) -> Scores:
    return Scores(
        held[0],
        labels,
        carried=held[1],
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
