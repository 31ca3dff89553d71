r"""What a fix is: calibration, then a move to the target, as a row of adjusters.

    scores that carry c  →  calibrated, still c  →  f + τ·(log t − log c), which carry t

Calibration comes first, under the validation samples' own prior; then the move to the target t. Its
strength τ is chosen on the validation samples, or 1 where the target was estimated: the estimate is
of p_t itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from longtail import posthoc
from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Numbers, as_numpy
from longtail.data import stratified_folds
from longtail.flows.fix_rows import in_range
from longtail.flows.samples import Integers
from longtail.posthoc import Affine, AffineAdjuster, LogitAdjustment, chain_affine
from longtail.shift import PriorEstimate, estimate_prior

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

    @classmethod
    def of(
        cls,
        target: PriorLike | TargetWord,
        tau: float | Literal["auto"] | None,
        criterion: Criterion,
        calibration: Calibration,
        seed: int,
        classes: Sequence[str] | int,
    ) -> Plan:
        """What is asked for, checked, for scores of these classes, or of so many without names."""
        options: dict[str, tuple[object, Any]] = {
            "target": (target, TargetWord),
            "criterion": (criterion, Criterion),
            "calibration": (calibration, Calibration),
            "tau": (tau, Literal["auto"]),
        }
        for name, (word, words) in options.items():
            if isinstance(word, str) and word not in get_args(words):
                other = {"target": ", or a prior", "tau": ", or a number"}.get(name, "")
                expected = ", ".join(get_args(words))
                raise ValueError(f"{name} must be one of {expected}{other}; got {word!r}")
        if isinstance(target, str):
            size = classes if isinstance(classes, int) else len(classes)
            goal = Prior.uniform(size) if target == "uniform" else target
        else:
            names = None if isinstance(classes, int) else classes
            goal = Prior.of(target, zeros="keep", classes=names)
        strength = None if isinstance(tau, str) else tau
        return cls(goal, strength, criterion, calibration, seed).resolved()

    def resolved(self) -> Plan:
        """The same with the calibration decided, so that it means the same for folds.

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


@dataclass(frozen=True, eq=False)
class FittedSteps:
    """What was fitted."""

    steps: tuple[AffineAdjuster, ...]  # the adjusters in the order in which they are applied
    target: Prior  # what the adjusted scores carry
    estimate: PriorEstimate | None = None  # the estimate of the target, where it was estimated

    def __call__(self, scores: Scores) -> Scores:
        """The scores after all steps, or an UnsettledError if they leave the range of numbers."""
        with in_range():
            for step in self.steps:
                scores = step(scores)
        return scores


class Features(NamedTuple):
    """Of unlabelled and of validation samples, a row each."""

    unlabelled: Numbers
    validation: Numbers


def target_json(target: Prior) -> Literal["uniform"] | list[float]:
    """A target as files of results hold it: by its word, or one probability a class."""
    uniform = target.is_close(Prior.uniform(target.num_classes))
    return "uniform" if uniform else target.probs.tolist()


def fit_steps(
    validation: Scores,
    plan: Plan,
    unlabelled: Scores | None = None,
    features: Features | None = None,
) -> FittedSteps:
    """Fit on labelled scores that say what they carry.

    Unlabelled ones are what an estimated target is estimated from; of any other they are samples
    that follow it, and say what the scores really carry. Features are of both.
    """
    assert validation.carried is not None
    calibrator = _CALIBRATORS.get(plan.resolved().calibration)
    calibrators = () if calibrator is None else (calibrator.fit(validation),)
    if plan.target != "estimate" and unlabelled is not None:
        goal = validation.carried if plan.target == "source" else plan.target
        calibrated = FittedSteps(calibrators, validation.carried)(unlabelled)
        matching = posthoc.MarginalMatching.fit(calibrated, goal)
        return FittedSteps((*calibrators, matching), goal)
    if plan.target == "source":
        return FittedSteps(calibrators, validation.carried)
    if plan.target == "estimate":
        assert unlabelled is not None
        calibrate = plan.calibration != "none"
        estimate = estimate_prior(
            unlabelled,
            validation=validation,
            features=None if features is None else features.unlabelled,
            validation_features=None if features is None else features.validation,
            calibrate=calibrate,
            seed=plan.seed,
        )
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


def cross_fit(
    validation: Scores, folds: Integers, plan: Plan, unlabelled: Scores | None = None
) -> list[Affine]:
    """For each fold all steps as one, fitted on the samples of the others.

    What a fix gains on the samples it was fitted on would look better than it is.
    """
    return [
        chain_affine(
            fit_steps(validation.take(folds != fold), plan, unlabelled).steps,
            validation.carried,
            validation.num_classes,
        )
        for fold in range(FOLDS)
    ]


def fold_numbers(labels: Integers, seed: int) -> Integers:
    """The fold of each sample."""
    if len(labels) < FOLDS:
        raise ValueError(
            f"what a fix gains is measured on validation samples in {FOLDS} parts, and there are "
            f"only {len(labels)} of them; give more, or others with their labels: --apply"
        )
    return as_numpy(stratified_folds(labels, FOLDS, seed))


def target_of(steps: tuple[AffineAdjuster, ...]) -> Prior | None:
    """The prior that the steps move to, also where a τ that was given does not reach it."""
    for step in steps:
        if isinstance(step, LogitAdjustment | posthoc.PCSoftmax):
            return step.target
        if isinstance(step, posthoc.MarginalMatching):
            return step.carried
    return None


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
