r"""Fixing a trained model: held-out scores → calibration → target → move, as a row of adjusters.

    scores that carry c  →  calibrated, still c  →  f + τ·(log t − log c), which carry t

Calibration comes first, under the held-out samples' own prior; then the move to the target t. Its
strength τ is chosen on the held-out samples, or 1 where the target was estimated: the estimate is
of p_t itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_kind_of, as_tensor
from longtail.data import stratified_folds
from longtail.posthoc import (
    AffineAdjuster,
    BiasCorrectedTemperature,
    LogitAdjustment,
    PCSoftmax,
    Temperature,
    VectorScaling,
)
from longtail.shift import PriorEstimate, estimate_prior

Criterion: TypeAlias = Literal["accuracy_under_target", "nll", "brier", "ece"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias", "vector", "none"]

# Numbers that are fitted on at once: 512 MB in float64.
MOST_NUMBERS = 2**26
_FOLDS = 5
# What a comparison of before and after is of, in metrics.json.
CROSS_FITTED: Final = "cross-fitted"
APPLIED: Final = "applied"


@dataclass(frozen=True)
class Plan:
    """What was asked for.

    Attributes:
        target: A prior; "source" to stay with what the scores carry; "estimate" for the prior of
            the samples to come.
        tau: The strength of the move, or None to choose it.
        criterion: What τ is chosen by.
        calibration: What is fitted before the move; "auto" is a temperature, and with a bias for
            each class where the target is estimated, since EM takes what is wrong with a class for
            a change of its frequency.
        seed: Decides folds and subsets.
    """

    target: Prior | Literal["source", "estimate"]
    tau: float | None = None
    criterion: Criterion = "accuracy_under_target"
    calibration: Calibration = "auto"
    seed: int = 0

    def resolved(self) -> Plan:
        """The same with "auto" decided, so that a plan for parts or folds means the same too."""
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
class Fix:
    """What was fitted.

    Attributes:
        steps: The adjusters in the order in which they are applied.
        target: What the fixed scores carry.
        adjustment: The move, where its τ was chosen.
        estimate: The estimate of the target, where it was estimated.
    """

    steps: tuple[AffineAdjuster, ...]
    target: Prior
    adjustment: LogitAdjustment | None = None
    estimate: PriorEstimate | None = None


def target_json(target: Prior) -> Literal["uniform"] | list[float]:
    """A target as files of results hold it: by its word, or one probability a class."""
    uniform = target.is_close(Prior.uniform(target.num_classes))
    return "uniform" if uniform else target.probs.tolist()


def fit_fix(validation: Scores, plan: Plan, unlabelled: Scores | None = None) -> Fix:
    """Fit the adjusters on labelled held-out scores.

    Args:
        validation: Labelled scores that say what they carry.
        plan: What to do.
        unlabelled: Scores of the samples to come, for a target that is estimated.
    """
    if validation.carried is None:
        raise ValueError(
            "it is not known what these scores carry: give the training counts if the model was "
            "trained by cross-entropy, or say what they carry"
        )
    calibrators = _calibrators(validation, plan)
    if plan.target == "source":
        return Fix(calibrators, validation.carried)
    if plan.target == "estimate":
        if unlabelled is None:
            raise ValueError(
                "a target can only be estimated from scores of the samples to come; give them"
            )
        estimate = estimate_prior(unlabelled, validation=validation)
        return Fix((*calibrators, PCSoftmax(estimate.prior)), estimate.prior, estimate=estimate)
    calibrated = applied(calibrators, validation)
    if plan.tau is not None:
        fixed = LogitAdjustment(validation.carried, plan.tau, plan.target)
        reached = fixed.affine(validation.carried, validation.num_classes).carried
        return Fix((*calibrators, fixed), reached or plan.target)
    move = LogitAdjustment(validation.carried, target=plan.target)
    chosen = move.fit(calibrated, criterion=plan.criterion)
    return Fix((*calibrators, chosen), plan.target, adjustment=chosen)


def _calibrators(validation: Scores, plan: Plan) -> tuple[AffineAdjuster, ...]:
    match plan.resolved().calibration:
        case "bias":
            return (BiasCorrectedTemperature.fit(validation),)
        case "vector":
            return (VectorScaling.fit(validation),)
        case "none":
            return ()
    return (Temperature.fit(validation),)


def tau_of(steps: tuple[AffineAdjuster, ...], target: Prior) -> float | None:
    """How far the steps move towards the target, beside calibrating; None if they do more."""
    tau = 0.0
    for step in steps:
        match step:
            case LogitAdjustment():
                # A τ that was given reaches a prior on the way, and that all the way.
                tau = step.tau if step.target.is_close(target) else 1.0
            case PCSoftmax():
                tau = 1.0
            case Temperature() | BiasCorrectedTemperature() | VectorScaling():
                pass
            case _:
                return None
    return tau


def applied(steps: tuple[AffineAdjuster, ...], scores: Scores) -> Scores:
    """The scores after all steps."""
    for step in steps:
        scores = step(scores)
    return scores


def held_out_fixes(validation: Scores, plan: Plan) -> Iterator[tuple[Scores, Scores]]:
    """Parts of the scores before and after, each fixed by what was fitted on the others.

    What a fix gains on the samples it was fitted on would look better than it is.
    """
    if validation.labels is None:
        raise ValueError("a fix is fitted on labelled scores, but these have no labels")
    if len(validation) < _FOLDS:
        raise ValueError(
            f"what a fix gains is measured on held-out samples in {_FOLDS} parts, and there are "
            f"only {len(validation)} of them; give more, or others with their labels: --apply"
        )
    folds = as_tensor(stratified_folds(validation.labels, _FOLDS, plan.seed))
    for fold in range(_FOLDS):
        fitted = fit_fix(rows_of(validation, folds != fold), plan)
        part = rows_of(validation, folds == fold)
        yield part, applied(fitted.steps, part)


def rows_of(scores: Scores, chosen: Tensor) -> Scores:
    """Some of the samples, by a mask or by positions."""
    labels = None if scores.labels is None else as_tensor(scores.labels)[chosen]
    return replace(
        scores,
        logits=as_kind_of(as_tensor(scores.logits)[chosen], scores.logits),
        labels=None if labels is None else as_kind_of(labels, scores.logits),
    )


def joined(parts: Sequence[Scores]) -> Scores:
    """Parts of the samples one after the other."""
    logits = torch.cat([as_tensor(part.logits) for part in parts])
    labels = torch.cat([as_tensor(part.labels) for part in parts if part.labels is not None])
    first = parts[0]
    return replace(
        first,
        logits=as_kind_of(logits, first.logits),
        labels=as_kind_of(labels, first.logits),
    )


def rows_to_fit_on(labels: Tensor, num_classes: int, seed: int = 0) -> Tensor | None:
    """Positions of at most MOST_NUMBERS / C samples, or None for all of them.

    Large classes give up samples first. That changes the label prior of what is left, which fitting
    takes into account, and keeps every sample of the small ones.
    """
    most = max(MOST_NUMBERS // num_classes, num_classes)
    if len(labels) <= most:
        return None
    counts = torch.bincount(labels, minlength=num_classes)
    # The cap of each class at which all of them together are just few enough.
    low, high = 1, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counts.clamp(max=middle).sum() <= most else (low, middle - 1)
    generator = torch.Generator("cpu").manual_seed(seed)
    shuffled = torch.randperm(len(labels), generator=generator, device="cpu")
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    starts = counts.cumsum(0) - counts
    rank = torch.arange(len(labels), device="cpu") - starts.repeat_interleave(counts)
    return by_class[rank < low].sort().values
