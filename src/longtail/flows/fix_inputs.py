"""What a fix starts from: what its scores carry, and the unlabelled ones beside them."""

from __future__ import annotations

from typing import Literal

from longtail.core import Prior, PriorLike, Scores
from longtail.flows import score_sources
from longtail.flows.fix_steps import Plan
from longtail.flows.samples import Integers
from longtail.flows.score_sources import Source, TrainLike


def prior_of_both(
    source: Source,
    rows: Source,
    carried: PriorLike | score_sources.CarriedWord | None,
    train: TrainLike | None,
    counts: Integers | None,
    zeros: Literal["error", "smooth"],
) -> Prior:
    """What the validation scores carry, and with them those to adjust."""
    prior = score_sources.carried_by(source, carried, train, counts, zeros)
    prior = prior or score_sources.unknown_carried(source)
    score_sources.check_alike(rows, source, prior)
    return prior


def unlabelled_scores(
    followers: Source | None, applied: Source | None, source: Source, plan: Plan, carried: Prior
) -> Scores | None:
    """The scores that say what is carried, or what the target is; None where none are needed."""
    scores = applied if plan.target == "estimate" else followers
    if plan.target == "estimate" and (applied is None or followers is not None):
        raise ValueError(
            "a target is estimated from the scores to adjust (apply=, --apply): give them, and no "
            "others without labels (unlabelled=, --unlabelled)"
        )
    if followers is not None and plan.tau is not None:
        raise ValueError(
            "unlabelled scores (unlabelled=, --unlabelled) say how far to move: leave out "
            f"tau = {plan.tau:g}"
        )
    if followers is not None and plan.criterion != Plan.criterion:
        raise ValueError(
            "unlabelled scores (unlabelled=, --unlabelled) say how far to move, so there is no τ "
            f"to choose: leave out criterion = {plan.criterion!r}"
        )
    if scores is None:
        return None
    score_sources.check_alike(scores, source, carried)
    return score_sources.scores_to_estimate_from(scores, carried, plan.seed)
