"""What `longtail fit` was asked for, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core import Prior, Scores
from longtail.flows.fix_steps import target_json
from longtail.heads import Head
from longtail.metrics import Interval

Criterion: TypeAlias = Literal["accuracy_under_target", "balanced_accuracy", "nll"]


@dataclass(frozen=True)
class FitPlan:
    """What was asked for.

    Attributes:
        methods: Names in METHODS; none for all but the slow ones.
        target: The prior to predict under; None for uniform.
        criterion: What the best method is the best by, on held-out samples: accuracy under the
            target, which for the uniform one is balanced accuracy, that itself, or log-loss.
        folds: How many parts the train part is cut into where there is no validation part.
        seed: Decides folds and whatever is drawn.
    """

    methods: Sequence[str] = ()
    target: Prior | None = None
    criterion: Criterion = "accuracy_under_target"
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True, eq=False)
class MethodResult:
    """How a method did.

    Attributes:
        name: In METHODS.
        held_out: Its metrics on the held-out samples.
        test: On the test part, fitted on all of the train part; None without one.
        gain: How much accuracy under the target it has over the linear layer on the held-out
            samples, with a paired interval.
        behind: How much the best has over it, likewise.
        value: The number that held-out samples chose, such as τ.
        seconds: What fitting and choosing took.
        failed: Why there is no result, or empty.
    """

    name: str
    held_out: dict[str, Interval]
    test: dict[str, Interval] | None
    gain: Interval
    behind: Interval
    value: float | None
    seconds: float
    failed: str = ""


@dataclass(frozen=True, eq=False)
class FitResult:
    """What a run of `longtail fit` found.

    Attributes:
        methods: Every method, best first.
        best: The name of the best.
        head: The best head, fitted on all of the train part.
        weight_decay: The one that was chosen, for features as they are in the file.
        decays: Log-loss on held-out samples of the weight decays that were tried.
        at_the_end: Whether the one that was chosen is the last of those to be tried.
        few: How many classes have fewer than five held-out samples.
        unjudged: How many of them have none.
        judged_on: What methods were compared on, in words.
        validation: Held-out scores of the best.
        test: Its scores of the test part.
        linear: Scores of the linear layer as it is, of the test part or else held out.
    """

    methods: list[MethodResult]
    best: str
    head: Head
    plan: FitPlan
    target: Prior
    counts: np.ndarray
    classes: tuple[str, ...] | None
    weight_decay: float
    decays: dict[float, float]
    at_the_end: bool
    few: int
    unjudged: int
    judged_on: str
    validation: Scores
    test: Scores | None
    linear: Scores

    @property
    def is_uniform(self) -> bool:
        """Whether accuracy under the target is balanced accuracy."""
        return self.target.is_close(Prior.uniform(self.target.num_classes))

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        return {
            "best": self.best,
            "target": target_json(self.target),
            "criterion": self.plan.criterion,
            "weight_decay": self.weight_decay,
            "decays": {f"{decay:.3g}": loss for decay, loss in sorted(self.decays.items())},
            "judged_on": self.judged_on,
            "classes_with_few_held_out_samples": self.few,
            "classes_without_held_out_samples": self.unjudged,
            "seed": self.plan.seed,
            "methods": {found.name: _shown(found) for found in self.methods},
        }


def _shown(found: MethodResult) -> dict[str, Any]:
    if found.failed:
        return {"failed": found.failed}
    return {
        "held_out": {name: asdict(m) for name, m in found.held_out.items()},
        "test": None if found.test is None else {n: asdict(m) for n, m in found.test.items()},
        "gain": asdict(found.gain),
        "behind": asdict(found.behind),
        "value": found.value,
        "seconds": found.seconds,
    }
