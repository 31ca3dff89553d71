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
from longtail.core import GroupEdges, Prior, Scores
from longtail.engine import save_head
from longtail.flows.file_names import METRICS, MODEL, TEST, VALIDATION
from longtail.flows.fit_methods import METHODS, UNLABELLED
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result, write_json
from longtail.flows.shifted_sets import ShiftedSet, shifted_sets
from longtail.heads import Head
from longtail.metrics import Interval

Criterion: TypeAlias = Literal["accuracy_under_target", "balanced_accuracy", "nll"]


@dataclass(frozen=True, eq=False)
class MethodScores:
    """How a method did; gains are of accuracy under the target on validation samples, paired."""

    name: str  # in METHODS
    title: str  # as tables name it
    validation: Mapping[str, Interval]
    test: Mapping[str, Interval] | None  # fitted on all of the train part; None without a test part
    gain: Interval  # over the linear layer
    behind: Interval  # what the best gains over it
    tau: float | None  # what validation samples chose, where they choose
    seconds: float  # of fitting and choosing
    error: str = ""  # why there is no result


@dataclass(frozen=True, eq=False)
class FitResult(Result):
    """What a fit came to."""

    model: Head  # the best, fitted on all of the train part, for features as they came
    table: tuple[MethodScores, ...]  # best first
    validation: Scores  # of the best
    test: Scores | None
    linear: Scores  # of the linear layer as it is, on the test part or else on validation samples
    target: Prior
    criterion: Criterion  # what the best is the best by
    counts: npt.NDArray[np.int64]  # training samples of each class
    classes: tuple[str, ...] | None
    weight_decay: float  # for features as they came
    decays: Mapping[float, float]  # log-loss on validation samples of every weight decay tried
    folds: int | None  # of the train part that methods were judged by; None: a validation part
    few: int  # classes with fewer than five validation samples
    unjudged: int  # those of them with none
    edges: GroupEdges  # of many, medium and few
    unlabelled: int  # samples that some methods learned from without their labels
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
        names = ("linear layer", self.best.title)
        return judge(self.linear, after, self.target, names=names, groups=self.edges)

    @cached_property
    def shifted_sets(self) -> tuple[ShiftedSet, ...]:
        """The best method on shifted sets of a test part that is balanced."""
        return shifted_sets(self.test, self.counts, self.validation, self.seed)

    @property
    def best_without_unlabelled(self) -> MethodScores | None:
        """The best of the methods that look at labelled samples alone."""
        labelled = (each for each in self.table if each.name not in UNLABELLED and not each.error)
        return next(labelled, None)

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
            "group_edges": str(self.edges),
            "unlabelled_samples": self.unlabelled,
            "seed": self.seed,
            "methods": {each.name: asdict(each) for each in self.table},
            "shifted_sets": [asdict(each) for each in self.shifted_sets],
        }

    def write(self, folder: Path) -> None:
        """Write model, scores and metrics.json into a folder that nothing is in yet."""
        about = {
            "method": self.best.name,
            "classes": self.classes,
            "counts": self.counts.tolist(),
            "target": self.target.probs.tolist(),
        }
        save_head(self.model, folder / MODEL, about)
        self.validation.save(folder / VALIDATION)
        if self.test is not None:
            self.test.save(folder / TEST)
        about_run = {"version": __version__, "command": self.command}
        write_json(folder / METRICS, about_run | self.as_json())
