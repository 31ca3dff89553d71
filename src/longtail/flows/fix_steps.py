r"""What a fix is: calibration, then a move to the target, as a row of adjusters; and its result.

    scores that carry c  →  calibrated, still c  →  f + τ·(log t − log c), which carry t

Calibration comes first, under the validation samples' own prior; then the move to the target t. Its
strength τ is chosen on the validation samples, or 1 where the target was estimated: the estimate is
of p_t itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from longtail import __version__, posthoc
from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.minimise import UnsettledError
from longtail.data import stratified_folds
from longtail.flows.judge import Judgement
from longtail.flows.results import Result, write_json
from longtail.flows.samples import Integers
from longtail.metrics import Interval
from longtail.posthoc import AffineAdjuster, LogitAdjustment, StoredAdjusters, save_adjusters
from longtail.posthoc import TauChoice as TauChoice
from longtail.shift import PriorEstimate, estimate_prior

ADJUSTER, SCORES, METRICS = "adjuster.json", "scores.safetensors", "metrics.json"
# What a comparison of before and after is of, in metrics.json.
CROSS_FITTED: Final = "cross-fitted"
APPLIED: Final = "applied"

Criterion: TypeAlias = Literal["accuracy_under_target", "nll", "brier", "ece"]
TargetWord: TypeAlias = Literal["uniform", "source", "estimate"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias", "vector", "none"]

FOLDS = 5
_Calibrator: TypeAlias = (
    posthoc.Temperature | posthoc.BiasCorrectedTemperature | posthoc.VectorScaling
)
_CALIBRATORS: dict[str, type[_Calibrator]] = {  # for each word but "none"
    "temperature": posthoc.Temperature,
    "bias": posthoc.BiasCorrectedTemperature,
    "vector": posthoc.VectorScaling,
}


@dataclass(frozen=True)
class Plan:
    """What was asked for; the words mean what they do for `fix`."""

    target: Prior | Literal["source", "estimate"]
    tau: float | None = None
    criterion: Criterion = "accuracy_under_target"
    calibration: Calibration = "auto"
    seed: int = 0

    def resolved(self) -> Plan:
        """The same with "auto" decided, so that a plan for parts or folds means the same too.

        EM takes what is wrong with a class for a change of its frequency: so its bias is fitted.
        """
        if self.calibration != "auto":
            return self
        return replace(self, calibration="bias" if self.target == "estimate" else "temperature")

    def as_json(self) -> dict[str, Any]:
        """What was asked for, so that a comparison of runs can tell them apart."""
        return {
            "target": target_json(self.target) if isinstance(self.target, Prior) else self.target,
            "tau": "auto" if self.tau is None else self.tau,
            "criterion": self.criterion,
            "calibration": self.calibration,
            "seed": self.seed,
        }


class StepFacts(NamedTuple):
    """What an adjuster does, in numbers; those that it does not have are None."""

    name: str
    temperature: float | None
    tau: float | None
    choice: TauChoice | None

    @classmethod
    def of(cls, step: AffineAdjuster) -> StepFacts:
        """Of any adjuster."""
        numbers = (getattr(step, name, None) for name in ("temperature", "tau", "choice"))
        return cls(type(step).__name__, *numbers)


@dataclass(frozen=True, eq=False)
class FittedSteps:
    """What was fitted."""

    steps: tuple[AffineAdjuster, ...]  # the adjusters in the order in which they are applied
    target: Prior  # what the adjusted scores carry
    estimate: PriorEstimate | None = None  # the estimate of the target, where it was estimated

    def __call__(self, scores: Scores) -> Scores:
        """The scores after all steps, or an UnsettledError if they leave the range of numbers."""
        try:
            with np.errstate(over="raise"):
                for step in self.steps:
                    scores = step(scores)
        except FloatingPointError:
            raise UnsettledError(
                "what fits most of the samples takes the logits of others beyond the range of "
                "numbers; leave out logits that are huge"
            ) from None
        return scores


def target_json(target: Prior) -> Literal["uniform"] | list[float]:
    """A target as files of results hold it: by its word, or one probability a class."""
    uniform = target.is_close(Prior.uniform(target.num_classes))
    return "uniform" if uniform else target.probs.tolist()


def fit_steps(validation: Scores, plan: Plan, unlabelled: Scores | None = None) -> FittedSteps:
    """Fit on labelled scores that say what they carry; `unlabelled` are for an estimated target."""
    assert validation.carried is not None
    calibrator = _CALIBRATORS.get(plan.resolved().calibration)
    calibrators = () if calibrator is None else (calibrator.fit(validation),)
    if plan.target == "source":
        return FittedSteps(calibrators, validation.carried)
    if plan.target == "estimate":
        assert unlabelled is not None
        estimate = estimate_prior(unlabelled, validation=validation)
        return FittedSteps(
            (*calibrators, posthoc.PCSoftmax(estimate.prior)), estimate.prior, estimate
        )
    if plan.tau is not None:
        move = LogitAdjustment(validation.carried, plan.tau, plan.target)
        reached = move.affine(validation.carried, validation.num_classes).carried
        return FittedSteps((*calibrators, move), reached or plan.target)
    calibrated = FittedSteps(calibrators, validation.carried)(validation)
    move = LogitAdjustment.fit(calibrated, target=plan.target, criterion=plan.criterion)
    return FittedSteps((*calibrators, move), plan.target)


def cross_fitted(validation: Scores, plan: Plan) -> tuple[Scores, Scores]:
    """The scores before and after, each part adjusted by what was fitted on the others.

    What a fix gains on the samples it was fitted on would look better than it is.
    """
    if len(validation) < FOLDS:
        raise ValueError(
            f"what a fix gains is measured on validation samples in {FOLDS} parts, and there are "
            f"only {len(validation)} of them; give more, or others with their labels: --apply"
        )
    assert validation.labels is not None
    folds = as_numpy(stratified_folds(validation.labels, FOLDS, plan.seed))
    before = [validation.take(folds == fold) for fold in range(FOLDS)]
    fitted = (fit_steps(validation.take(folds != fold), plan) for fold in range(FOLDS))
    after = [steps(part) for steps, part in zip(fitted, before, strict=True)]
    return Scores.concat(before), Scores.concat(after)


def tau_of(steps: tuple[AffineAdjuster, ...], target: Prior) -> float | None:
    """How far the steps move towards the target, beside calibrating; None if they do more."""
    tau = 0.0
    for step in steps:
        if isinstance(step, LogitAdjustment):
            # A τ that was given reaches a prior on the way, and that all the way.
            tau = step.tau if step.target.is_close(target) else 1.0
        elif isinstance(step, posthoc.PCSoftmax):
            tau = 1.0
        elif not isinstance(step, tuple(_CALIBRATORS.values())):
            return None
    return tau


@dataclass(frozen=True, eq=False)
class FixResult(Result):
    """What `fix` found.

    Attributes:
        measured: Whether the judgement is of the samples the fix was fitted on, each part by what
            was fitted on the others, or of samples it was applied to; None without one.
    """

    adjuster: (
        StoredAdjusters  # all steps, in the order in which they are applied; call it on scores
    )
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
