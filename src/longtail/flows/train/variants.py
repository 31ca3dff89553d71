"""Ways to predict with what was trained, and what validation samples choose of them.

What is chosen on validation samples is judged on them fold by fold: each fold is predicted by what
the others choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.scores import Split
from longtail.flows.folds import cross_fitted
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.flows.train.recipe import Target
from longtail.heads import Head, TauNorm
from longtail.posthoc import LogitAdjustment, TauChoice


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to predict with what was trained."""

    name: str
    scores: Mapping[Split, Scores]  # of validation and test, where they are
    head: Head | None = None  # the second-stage head behind it
    tau: float = 0.0  # how far it was moved to the target from what was trained
    choice: TauChoice | None = None  # how that was chosen, where it was

    @property
    def norm_tau(self) -> float | None:
        """The τ that the weights were normalised by, if they were."""
        return self.head.tau if isinstance(self.head, TauNorm) else None


def variants_of(
    option: Target, carried: Prior | None, target: Prior, scores: Mapping[Split, Scores]
) -> list[Variant]:
    """The scores as trained, and moved to the target unless they carry it, or nothing known."""
    trained = Variant(AS_TRAINED, scores)
    if carried is None or (carried.is_close(target) and option.tau != "auto"):
        return [trained]
    if option.tau == 1:
        moved = {split: part.under(target) for split, part in scores.items()}
        return [trained, Variant(UNDER_TARGET, moved, tau=1.0)]
    if option.tau != "auto":
        move = LogitAdjustment(carried, option.tau, target)
        moved = {split: move(part) for split, part in scores.items()}
        return [trained, Variant(f"moved by τ = {move.tau:g}", moved, tau=move.tau)]

    def fitted(validation: Scores) -> LogitAdjustment:
        if not any_counts(validation, target):
            return LogitAdjustment(carried, 1.0, target)
        return LogitAdjustment.fit(validation, carried, target, option.criterion)

    # There is a validation part: that was checked before training.
    move = fitted(scores["validation"])
    moved = {split: move(part) for split, part in scores.items()}
    moved["validation"] = cross_fitted(scores["validation"], fitted)
    return [trained, Variant(UNDER_TARGET, moved, tau=move.tau, choice=move.choice)]


def any_counts(samples: Scores, target: Prior) -> bool:
    """Whether a sample is of a class that the target does not rule out."""
    return bool(target.probs[as_numpy(samples.labels)].any())
