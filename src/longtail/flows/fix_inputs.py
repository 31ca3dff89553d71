"""What a fix starts from: what its scores carry, and the unlabelled ones beside them."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayLike, Numbers, as_array, as_numpy
from longtail.core.measure import class_named
from longtail.data import ScoreTable, read_feature_rows
from longtail.flows import score_sources
from longtail.flows.fix_steps import Features, Plan
from longtail.flows.samples import Integers
from longtail.flows.score_sources import Source, TrainLike
from longtail.stats import chi_square_quantile

FeatureFile: TypeAlias = ArrayLike | str | os.PathLike[str]  # or its rows

_SURE = 0.999  # that labels do not follow a prior


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
    followers: Source | None, applied: Source | None, source: Source, plan: Plan, labelled: Scores
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
    if followers is not None and isinstance(plan.target, Prior) and plan.target.has_zeros:
        absent = int(np.flatnonzero(plan.target.probs == 0)[0])
        raise ValueError(
            "with unlabelled scores (unlabelled=, --unlabelled) the target must give every class a "
            f"probability above zero, and {class_named(absent, source.classes)} has none: give it "
            "a small one, or leave the unlabelled scores out"
        )
    if followers is not None and plan.criterion != Plan.criterion:
        raise ValueError(
            "unlabelled scores (unlabelled=, --unlabelled) say how far to move, so there is no τ "
            f"to choose: leave out criterion = {plan.criterion!r}"
        )
    if scores is None:
        return None
    score_sources.check_alike(scores, source, labelled.carried)
    others = score_sources.scores_to_estimate_from(scores, labelled.carried, plan.seed)
    if isinstance(plan.target, Prior):
        _check_following(others, labelled, plan.target)
    return others


def features_of_both(
    features: FeatureFile | None,
    validation_features: FeatureFile | None,
    rows: Source,
    source: Source,
    plan: Plan,
    some: Integers | None,
) -> Features | None:
    """Those of the scores to adjust and of the validation scores, or None where there are none."""
    if features is None and validation_features is None:
        return None
    if plan.target != "estimate":
        raise ValueError(
            "features (features=, --features) help to estimate a target (target='estimate', "
            "--target estimate), and this one is known: leave them out"
        )
    if features is None or validation_features is None:
        raise ValueError(
            "how much neighbours tell is found out on the validation samples: give the features of "
            "both (features= and validation_features=, --features and --validation-features)"
        )
    own = _feature_rows(features, rows, score_sources.rows_to_estimate_from(rows, plan.seed))
    return Features(own, _feature_rows(validation_features, source, some))


def asked_of(plan: Plan, followers: Source | None, features: FeatureFile | None) -> dict[str, Any]:
    """What was asked for, as metrics.json has it."""
    asked = plan.as_json()
    if followers is not None:
        asked["unlabelled"] = score_sources.name_of(followers)
    if isinstance(features, str | os.PathLike):
        asked["features"] = os.fspath(features)
    elif features is not None:
        asked["features"] = "these features"
    return asked


def _feature_rows(features: FeatureFile, source: Source, some: Integers | None) -> Numbers:
    """As many as there are scores, or those at some positions."""
    if isinstance(features, str | os.PathLike):
        found = read_feature_rows(features)
    else:
        found = as_numpy(as_array(features))
    size = source.num_rows if isinstance(source, ScoreTable) else len(source)
    if len(found) != size:
        raise ValueError(
            f"there are features of {len(found):,} samples, but {score_sources.name_of(source)} "
            f"has scores of {size:,}; give one row a sample, in the same order"
        )
    return found if some is None else found[some]


def _check_following(others: Scores, labelled: Scores, target: Prior) -> None:
    """Raise if they are the labelled samples, and their labels do not follow the target."""
    if len(others) != len(labelled) or len(labelled) < 2:
        return
    one, two = (as_numpy(each.logits) for each in (others, labelled))
    if not np.array_equal(one[np.lexsort(one.T[:2])], two[np.lexsort(two.T[:2])]):
        return
    often = np.bincount(as_numpy(labelled.labels), minlength=len(target))
    expected = len(labelled) * target.probs
    apart = float((np.square(often - expected) / expected).sum())
    if apart > chi_square_quantile(_SURE, len(target) - 1):
        raise ValueError(
            "the unlabelled samples (unlabelled=, --unlabelled) are the validation samples "
            "themselves, whose labels do not follow the target: give samples that do, leave them "
            "out, or move to the prior of those to adjust (target='estimate', --target estimate)"
        )
