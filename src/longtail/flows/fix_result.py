"""What a fix found, and the files it is kept in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from longtail import __version__
from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.flows.fix_steps import StepFacts, TauChoice
from longtail.flows.json_text import write_json
from longtail.flows.judge import Judgement
from longtail.flows.results import Result
from longtail.flows.samples import Integers
from longtail.metrics import Interval
from longtail.posthoc import StoredAdjusters, save_adjusters
from longtail.shift import PriorEstimate

ADJUSTER, SCORES, METRICS = "adjuster.json", "scores.safetensors", "metrics.json"
# What a comparison of before and after is of, in metrics.json.
CROSS_FITTED: Final = "cross-fitted"
APPLIED: Final = "applied"


@dataclass(frozen=True, eq=False)
class FixResult(Result):
    """What `fix` found.

    Attributes:
        adjuster: All steps, in the order in which they are applied; call it on scores.
        measured: Whether the judgement is of the samples the fix was fitted on, each part by what
            was fitted on the others, or of samples it was applied to; None without one.
    """

    adjuster: StoredAdjusters
    carried: Prior | None  # what the scores carried before
    target: Prior | None  # what they carry now, or None if that is not known
    estimate: PriorEstimate | None  # the estimate of the target, where it was estimated
    judgement: Judgement | None  # before and after, or None if there were no labels
    measured: Literal["cross-fitted", "applied"] | None
    measured_on: str  # the name of the scores that it is of
    asked: dict[str, Any]  # what was asked for, as in metrics.json
    classes: tuple[str, ...] | None  # the names of the classes, if known
    counts: Integers | None  # training samples of each class, if known
    command: str  # what made it
    _scores: Scores | Path

    kind: ClassVar[str] = "fix"

    @cached_property
    def scores(self) -> Scores:
        """The adjusted scores; those that were written to a file are read when first asked for."""
        return self._scores if isinstance(self._scores, Scores) else Scores.load(self._scores)

    @property
    def steps(self) -> tuple[StepFacts, ...]:
        """What each step of the adjuster does."""
        return tuple(map(StepFacts.of, self.adjuster.adjusters))

    @property
    def choice(self) -> TauChoice | None:
        """How τ was chosen, if it was."""
        return next((step.choice for step in self.steps if step.choice), None)

    @property
    def before(self) -> Mapping[str, Interval]:
        """Every metric before, with its interval; empty without labels."""
        return {} if self.judgement is None else self.judgement.before

    @property
    def after(self) -> Mapping[str, Interval]:
        """Every metric after, with its interval; empty without labels."""
        return {} if self.judgement is None else self.judgement.after

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        moves = (step for step in self.steps if step.name == "LogitAdjustment")
        values: dict[str, Any] = {
            "steps": [step.name for step in self.steps],
            "tau": next((step.tau for step in moves), None),
            "choice": None if self.choice is None else asdict(self.choice),
            "carried": _probs(self.carried),
            "carried_after": _probs(self.target),
            "measured": self.measured,
            "measured_on": self.measured_on,
            "asked": self.asked,
        }
        if self.estimate is not None:
            ends = {"low": self.estimate.low, "high": self.estimate.high}
            values["estimated"] = {name: as_numpy(end).tolist() for name, end in ends.items()}
        return values | ({} if self.judgement is None else self.judgement.as_json())

    def written_to(self, folder: str | os.PathLike[str] | None) -> FixResult:
        """The same, with its adjuster and its numbers beside the scores if there is a folder."""
        if folder is not None:
            made = self.adjuster
            save_adjusters(Path(folder) / ADJUSTER, made.adjusters, made.carried, made.classes)
            head = {"version": __version__, "command": self.command}
            write_json(Path(folder) / METRICS, head | self.as_json())
        return self


def _probs(prior: Prior | None) -> list[float] | None:
    return None if prior is None else prior.probs.tolist()
