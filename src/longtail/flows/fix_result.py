"""The result of a fix: what was fitted, what it does, and what it gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple

from longtail import __version__
from longtail.core import Prior, Scores
from longtail.core.arrays import Indices, as_numpy
from longtail.core.measure import class_named
from longtail.flows.decisions import CostFacts, Decider, SetFacts, write_decisions
from longtail.flows.file_names import ADJUSTER, DECISIONS, FIX, METRICS, SETS
from longtail.flows.judge import Judgement
from longtail.flows.results import Result, write_json
from longtail.flows.samples import Integers
from longtail.metrics import Interval, Sanity
from longtail.posthoc import (
    AffineAdjuster,
    ConformalSets,
    MarginalMatching,
    StoredAdjusters,
    save_adjusters,
)
from longtail.posthoc import TauChoice as TauChoice
from longtail.shift import PriorEstimate, ShiftCheck
from longtail.shift.only_prior import MOST_CLASSES as MOST_CLASSES

# What a comparison of before and after is of, in metrics.json.
CROSS_FITTED: Final = "cross-fitted"
APPLIED: Final = "applied"


class StepFacts(NamedTuple):
    """What an adjuster does, in numbers; those that it does not have are None."""

    name: str
    temperature: float | None
    tau: float | None
    choice: TauChoice | None
    beyond: float | None  # how far logits are off from what they were said to carry

    @classmethod
    def of(cls, step: AffineAdjuster) -> StepFacts:
        """Of any adjuster."""
        numbers = (getattr(step, name, None) for name in ("temperature", "tau", "choice", "beyond"))
        return cls(type(step).__name__, *numbers)


@dataclass(frozen=True, eq=False)
class FixResult(Result):
    """What a fix came to.

    Attributes:
        measured: Whether the judgement is of the samples the fix was fitted on, each part by what
            was fitted on the others, or of samples it was applied to; None without one.
    """

    adjuster: StoredAdjusters  # all steps in their order; call it on scores
    carried: Prior | None  # what the scores carried before
    carried_after: Prior | None  # what they carry now, or None if that is not known
    estimate: PriorEstimate | None  # the estimate of the target, where it was estimated
    judgement: Judgement | None  # before and after, or None if there were no labels
    measured: Literal["cross-fitted", "applied"] | None
    measured_on: str  # the name of the scores that it is of
    asked: dict[str, Any]  # what was asked for, as in metrics.json
    classes: tuple[str, ...] | None  # the names of the classes, if known
    counts: Integers | None  # training samples of each class, if known
    command: str  # what made it
    _scores: Scores | Path
    is_applied_to_validation: bool = False  # whether the scores to adjust are those fitted on
    shift: ShiftCheck | None = None  # whether new scores differ by their prior alone
    is_shift_unchecked: bool = False  # as they have too many classes for that
    decider: Decider | None = None  # how the scores are decided, if costs were given
    sets: ConformalSets | None = None  # call it on the adjusted scores, if sets were asked for

    kind: ClassVar[str] = "fix"

    @cached_property
    def scores(self) -> Scores:
        """The adjusted scores; those that were written to a file are read when first asked for."""
        return self._scores if isinstance(self._scores, Scores) else Scores.load(self._scores)

    @property
    def files(self) -> tuple[str, ...]:
        """What the files are called that it is written to."""
        has_decisions = self.decider is not None or self.sets is not None
        return (*FIX, *([SETS] if self.sets else []), *([DECISIONS] if has_decisions else []))

    @property
    def steps(self) -> tuple[StepFacts, ...]:
        """What each step of the adjuster does."""
        return tuple(map(StepFacts.of, self.adjuster.adjusters))

    @property
    def choice(self) -> TauChoice | None:
        """How τ was chosen, if it was."""
        return next((step.choice for step in self.steps if step.choice), None)

    @property
    def matching(self) -> MarginalMatching | None:
        """The move by what unlabelled samples say is carried, if there is one."""
        steps = self.adjuster.adjusters
        return next((step for step in steps if isinstance(step, MarginalMatching)), None)

    @property
    def decisions(self) -> Indices | None:
        """What costs decide of the adjusted scores, -1 where nothing; None without costs."""
        return None if self.decider is None else self.decider(self.scores)

    @cached_property
    def cost_facts(self) -> CostFacts | None:
        """What decisions cost; None without costs or labels."""
        if self.decider is None or self.judgement is None:
            return None
        return CostFacts.of(self.judgement, self.decider)

    @cached_property
    def set_facts(self) -> SetFacts | None:
        """How good the sets are; None where none were asked for."""
        if self.sets is None or self.judgement is None:
            return None
        return SetFacts.of(self.judgement, self.sets)

    @property
    def before(self) -> Mapping[str, Interval]:
        """Every metric before, with its interval; empty without labels."""
        return {} if self.judgement is None else self.judgement.before

    @property
    def after(self) -> Mapping[str, Interval]:
        """Every metric after, with its interval; empty without labels."""
        return {} if self.judgement is None else self.judgement.after

    @property
    def sanity(self) -> Sanity | None:
        """Whether the scores are better than those of no model; None without labels."""
        return None if self.judgement is None else self.judgement.sanity

    @property
    def fits_worst(self) -> tuple[str, ...]:
        """The classes that fit a change of the prior alone worst."""
        worst = () if self.shift is None else self.shift.worst
        return tuple(class_named(k, self.classes) for k in worst)

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        moves = (step for step in self.steps if step.name == "LogitAdjustment")
        values: dict[str, Any] = {
            "steps": [step.name for step in self.steps],
            "tau": next((step.tau for step in moves), None),
            "choice": None if self.choice is None else asdict(self.choice),
            "carried": _probs(self.carried),
            "carried_after": _probs(self.carried_after),
            "measured": self.measured,
            "measured_on": self.measured_on,
            "asked": self.asked,
        }
        if self.estimate is not None:
            ends = {"low": self.estimate.low, "high": self.estimate.high}
            values["estimated"] = {name: as_numpy(end).tolist() for name, end in ends.items()}
        if self.matching is not None:
            low, high = self.matching.interval or (None, None)
            values["measured_carried"] = {
                "prior": _probs(self.matching.measured),
                "low": None if low is None else low.tolist(),
                "high": None if high is None else high.tolist(),
            }
        if self.shift is not None:
            worst = [self.classes[k] if self.classes else k for k in self.shift.worst]
            values["only_prior_changed"] = {"p_value": self.shift.p_value, "fits_worst": worst}
        if self.is_shift_unchecked:
            values["only_prior_changed"] = {"not_checked": "too many classes"}
        if self.cost_facts is not None:
            values["costs"] = self.cost_facts.as_json()
        if self.set_facts is not None:
            values["sets"] = self.set_facts.as_json()
        return values | ({} if self.judgement is None else self.judgement.as_json())

    def write(self, folder: Path) -> None:
        """Write adjuster and numbers beside the scores, which are there already."""
        made = self.adjuster
        save_adjusters(folder / ADJUSTER, made.adjusters, made.carried, made.classes)
        if self.sets is not None:
            self.sets.save(folder / SETS)
        if DECISIONS in self.files:
            write_decisions(folder / DECISIONS, self.scores, self.decider, self.sets)
        about_run = {"version": __version__, "command": self.command}
        write_json(folder / METRICS, about_run | self.as_json())


def _probs(prior: Prior | None) -> list[float] | None:
    return None if prior is None else prior.probs.tolist()
