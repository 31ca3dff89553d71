"""What a fit came to: a model, how every method did, and on what that was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail import __version__
from longtail.core import Prior, Scores
from longtail.engine import save_head
from longtail.flows.fit_methods import METHODS
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result, write_json
from longtail.heads import Head
from longtail.metrics import Interval

Criterion: TypeAlias = Literal["accuracy_under_target", "balanced_accuracy", "nll"]


@dataclass(frozen=True, eq=False)
class MethodScores:
    """How a method did.

    Attributes:
        name: In METHODS.
        title: As tables name it.
        validation: Its metrics on the validation samples.
        test: On the test part, fitted on all of the train part; None without one.
        gain: How much accuracy under the target it has over the linear layer on the validation
            samples, with a paired interval.
        behind: How much the best has over it, likewise.
        tau: The number that validation samples chose, where there is one.
        seconds: What fitting and choosing took.
        error: Why there is no result, or empty.
    """

    name: str
    title: str
    validation: Mapping[str, Interval]
    test: Mapping[str, Interval] | None
    gain: Interval
    behind: Interval
    tau: float | None
    seconds: float
    error: str = ""


@dataclass(frozen=True, eq=False)
class FitResult(Result):
    """What a fit came to.

    Attributes:
        model: The best head, fitted on all of the train part, for features as they came.
        table: Every method, best first.
        validation: Validation scores of the best.
        test: Its scores of the test part, if there is one.
        linear: Scores of the linear layer as it is, of the test part or else of validation.
        target: The prior to predict under.
        criterion: What the best is the best by.
        counts: Training samples of each class.
        classes: Their names, if known.
        weight_decay: The one that was chosen, for features as they came.
        decays: Log-loss on validation samples of every weight decay that was tried.
        folds: How many folds of the train part methods were judged by; None for a validation part.
        few: How many classes have fewer than five validation samples.
        unjudged: How many of them have none.
        seed: Of folds and of whatever was drawn.
        command: What made it.
    """

    model: Head
    table: tuple[MethodScores, ...]
    validation: Scores
    test: Scores | None
    linear: Scores
    target: Prior
    criterion: Criterion
    counts: npt.NDArray[np.int64]
    classes: tuple[str, ...] | None
    weight_decay: float
    decays: Mapping[float, float]
    folds: int | None
    few: int
    unjudged: int
    seed: int
    command: str

    kind: ClassVar[str] = "fit"

    @property
    def best(self) -> MethodScores:
        """The method that was kept."""
        return self.table[0]

    @property
    def scores(self) -> Scores:
        """The scores of the best that a judgement is on: of the test part if there is one."""
        return self.validation if self.test is None else self.test

    @cached_property
    def judgement(self) -> Judgement:
        """The best method beside the linear layer, on `scores`."""
        after = None if self.best.name == "linear" else self.scores
        return judge(self.linear, after, self.target, names=("linear layer", self.best.title))

    @property
    def is_uniform(self) -> bool:
        """Whether accuracy under the target is balanced accuracy."""
        return self.target.is_close(Prior.uniform(self.target.num_classes))

    @property
    def is_decay_at_end(self) -> bool:
        """Whether the weight decay is the last of those tried, so that one beyond may be better."""
        return self.weight_decay in (min(self.decays), max(self.decays))

    @property
    def is_gain_certain(self) -> bool:
        """Whether the best gains more than chance would give, with samples enough to say so."""
        # Intervals of classes with next to no samples lean on the other classes.
        return self.best.gain.is_above_zero and 5 * self.few <= len(self.counts)

    @property
    def ties(self) -> tuple[MethodScores, ...]:
        """The methods that validation samples cannot tell from the best."""
        return tuple(
            each for each in self.table[1:] if each.behind.low is not None and each.behind.low <= 0
        )

    @property
    def use(self) -> Literal["carries_target", "as_is", "retarget"]:
        """How the model predicts: by its logits, which carry the target or not, or moved to it."""
        if self.model.carried == self.target:
            return "carries_target"
        keeps = METHODS[self.best.name].keeps_logits(self.target)
        return "as_is" if keeps or self.model.carried is None else "retarget"

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a name."""
        return {
            "best": self.best.name,
            "target": "uniform" if self.is_uniform else self.target.probs.tolist(),
            "criterion": self.criterion,
            "weight_decay": self.weight_decay,
            "decays": {f"{decay:.3g}": loss for decay, loss in sorted(self.decays.items())},
            "folds": self.folds,
            "classes_with_few_validation_samples": self.few,
            "classes_without_validation_samples": self.unjudged,
            "seed": self.seed,
            "methods": {each.name: asdict(each) for each in self.table},
        }

    def write(self, folder: Path) -> None:
        """Write model, scores and metrics.json into a folder that nothing is in yet."""
        about = {
            "method": self.best.name,
            "classes": self.classes,
            "counts": self.counts.tolist(),
            "target": self.target.probs.tolist(),
        }
        save_head(self.model, folder / "model.safetensors", about)
        self.validation.save(folder / "validation.safetensors")
        if self.test is not None:
            self.test.save(folder / "test.safetensors")
        about_run = {"version": __version__, "command": self.command}
        write_json(folder / "metrics.json", about_run | self.as_json())
