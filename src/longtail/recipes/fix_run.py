"""The whole of `longtail fix`: fit on held-out scores, write adjusted ones, compare honestly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longtail.core import Prior, Scores
from longtail.data.score_tables import ScoreTable
from longtail.metrics import Difference
from longtail.posthoc import (
    AffineAdjuster,
    LogitAdjustment,
    chain_affine,
    load_adjusters,
    save_adjusters,
)
from longtail.recipes.fix import (
    APPLIED,
    CROSS_FITTED,
    Fix,
    Plan,
    fit_fix,
    held_out_fixes,
    joined,
    target_json,
    tau_of,
)
from longtail.recipes.fix_tables import (
    Counts,
    adjusted,
    scores_to_estimate_from,
    scores_to_fit_on,
    write_fixed,
)
from longtail.report import Judged

ADJUSTER, SCORES = "adjuster.json", "scores.safetensors"


@dataclass(frozen=True, eq=False)
class FixResult:
    """What a run of `longtail fix` found.

    Attributes:
        steps: The adjusters in the order in which they are applied.
        fix: How they were fitted; None if they were read from a file.
        carried: What the scores carried before.
        target: What they carry now, or None if that is not known.
        comparison: Before and after, or None if there were no labels.
        judged: The samples behind it, of many a part; None if there were no labels.
        measured: Whether the comparison is of the samples the fix was fitted on, each part by what
            was fitted on the others, or of samples it was applied to; None without one.
        measured_on: What the comparison is of, in words.
        asked: What was asked for, as in metrics.json.
        classes: The names of the classes, if known.
        counts: Training samples of each class, if known.
    """

    steps: tuple[AffineAdjuster, ...]
    fix: Fix | None
    carried: Prior | None
    target: Prior | None
    comparison: Difference | None
    judged: Judged | None
    measured: Literal["cross-fitted", "applied"] | None
    measured_on: str
    asked: dict[str, Any]
    classes: tuple[str, ...] | None
    counts: Counts

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        moves = [step for step in self.steps if isinstance(step, LogitAdjustment)]
        estimate = self.fix.estimate if self.fix else None
        shown: dict[str, Any] = {
            "steps": [type(step).__name__ for step in self.steps],
            "tau": moves[0].tau if moves else None,
            "choice": next((asdict(step.choice) for step in moves if step.choice), None),
            "carried": _probs(self.carried),
            "carried_after": _probs(self.target),
            "measured": self.measured,
            "measured_on": self.measured_on,
            "asked": self.asked,
        }
        if estimate is not None:
            shown["estimated"] = {
                name: np.asarray(getattr(estimate, name)).tolist() for name in ("low", "high")
            }
        return shown | ({} if self.comparison is None else self.comparison.as_json())


def run_fix(
    table: ScoreTable,
    plan: Plan,
    carried: Prior | None,
    counts: Counts,
    output: Path,
    to_apply: ScoreTable | None = None,
    advance: Callable[[int], None] = lambda rows: None,
) -> FixResult:
    """Fit on a table of held-out scores; write them, or another table, adjusted.

    Args:
        table: Labelled held-out scores.
        plan: What to do.
        carried: What both tables carry, if they do not say so themselves.
        counts: Training samples of each class, if known.
        output: The folder for the adjuster and the scores.
        to_apply: Other scores of the same model.
        advance: Called with the number of rows written since the last call.
    """
    plan = plan.resolved()  # before the target may be replaced by its estimate
    validation = scores_to_fit_on(table, carried, counts, plan.seed)
    if to_apply is not None:
        _check_alike(to_apply, table, validation.carried)
    unlabelled = None
    if plan.target == "estimate":
        if to_apply is None:
            raise ValueError(
                "the target is estimated from scores of the samples to come: give them with "
                "--apply, or name a target"
            )
        unlabelled = scores_to_estimate_from(to_apply, validation.carried, plan.seed)
    fix = fit_fix(validation, plan, unlabelled)
    save_adjusters(output / ADJUSTER, fix.steps, carried=validation.carried, classes=table.classes)
    step = chain_affine(fix.steps, validation.carried, table.num_classes)
    known = validation.counts if counts is None else counts
    # What was asked for, also where a given τ does not reach it.
    target = plan.target if isinstance(plan.target, Prior) else fix.target
    # The samples whose prior was estimated stand for themselves.
    under = None if fix.estimate is not None else target
    written = table if to_apply is None else to_apply
    measured = write_fixed(
        written, step, output / SCORES, counts, under, advance, compare=to_apply is not None
    )
    where = str(written.path)
    how: Literal["cross-fitted", "applied"] = APPLIED
    if measured is None:
        judged = _cross_fitted(validation, plan, fix, target)
        measured, how = judged.comparison, CROSS_FITTED
        where = f"{table.path}, each fifth fixed by what was fitted on the others"
    else:
        some = scores_to_fit_on(written, validation.carried, counts, plan.seed)
        after, tau = adjusted(some, step), tau_of(fix.steps, target)
        judged = Judged(some, after, target, validation, tau=tau)
    return FixResult(
        steps=fix.steps,
        fix=fix,
        carried=validation.carried,
        target=step.carried,
        comparison=measured,
        judged=judged,
        measured=how,
        measured_on=where,
        asked=plan.as_json(),
        classes=table.classes,
        counts=None if known is None else np.asarray(known),
    )


def rerun_fix(
    table: ScoreTable,
    adjuster: Path,
    counts: Counts,
    output: Path,
    advance: Callable[[int], None] = lambda rows: None,
) -> FixResult:
    """Apply adjusters that were fitted before to a table of scores of the same model."""
    stored = load_adjusters(adjuster)
    if stored.classes and table.classes and stored.classes != table.classes:
        raise ValueError(
            f"{adjuster} was fitted for the classes {', '.join(stored.classes[:3])}, ..., but "
            f"{table.path} has {', '.join(table.classes[:3])}, ...; give scores of the same model"
        )
    carried = table.carried or stored.carried
    step = chain_affine(stored.adjusters, carried, table.num_classes)
    save_adjusters(output / ADJUSTER, stored.adjusters, stored.carried, stored.classes)
    compared = write_fixed(table, step, output / SCORES, counts, step.carried, advance)
    judged = None
    if compared is not None:
        some = scores_to_fit_on(table, carried, counts, seed=0)
        target = step.carried or Prior.uniform(table.num_classes)
        judged = Judged(some, adjusted(some, step), target, tau=tau_of(stored.adjusters, target))
    return FixResult(
        steps=stored.adjusters,
        fix=None,
        carried=carried,
        target=step.carried,
        comparison=compared,
        judged=judged,
        measured=None if judged is None else APPLIED,
        measured_on=str(table.path),
        asked={} if step.carried is None else {"target": target_json(step.carried)},
        classes=table.classes or stored.classes,
        counts=counts,
    )


def _check_alike(other: ScoreTable, table: ScoreTable, carried: Prior | None) -> None:
    """Raise unless both tables are of one model: the same classes, the same carried prior."""
    one, two = (table.classes, other.classes)
    if one and two and one != two and sorted(one) == sorted(two):
        at = next(at for at, pair in enumerate(zip(one, two, strict=True)) if len(set(pair)) > 1)
        raise ValueError(
            f"{other.path} has the classes of {table.path} in another order: column {at} is "
            f"{two[at]!r} there and {one[at]!r} here; put its columns in the same order"
        )
    if other.num_classes != table.num_classes or (one and two and one != two):
        raise ValueError(
            f"{other.path} has {other.num_classes} classes and {table.path} {table.num_classes}, "
            "or they name them differently; both must be scores of the same model"
        )
    if carried and other.carried and not carried.is_close(other.carried):
        raise ValueError(
            f"{other.path} says that it carries {other.carried!r}, but what is fitted starts from "
            f"{carried!r}: the scores were adjusted already, or another model made them"
        )


def _cross_fitted(validation: Scores, plan: Plan, fix: Fix, target: Prior) -> Judged:
    if fix.estimate is not None:
        plan = replace(plan, target=target, tau=1.0)
    parts = list(zip(*held_out_fixes(validation, plan), strict=True))
    before, after = joined(parts[0]), joined(parts[1])
    return Judged(before, after, target, tau=tau_of(fix.steps, target), is_cross_fitted=True)


def _probs(prior: Prior | None) -> list[float] | None:
    return None if prior is None else prior.probs.tolist()
