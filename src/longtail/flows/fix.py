"""Fixing a trained model: fit on validation scores, adjust them or others, compare honestly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from longtail.core import Prior, PriorLike
from longtail.core.minimise import UnsettledError
from longtail.flows import fix_steps, score_sources
from longtail.flows.fix_steps import APPLIED, CROSS_FITTED, SCORES, FixResult, Plan, tau_of
from longtail.flows.judge import judge
from longtail.flows.score_sources import Source, SourceLike, adjusted, name_of, scores_to_fit_on
from longtail.posthoc import StoredAdjusters, chain_affine, load_adjusters

_quiet: Callable[[int], None] = lambda rows: None  # noqa: E731


def fix(
    validation: SourceLike,
    apply: SourceLike | None = None,
    train: PriorLike | None = None,
    target: PriorLike | fix_steps.TargetWord = "uniform",
    *,
    output: str | os.PathLike[str] | None = None,
    carried: PriorLike | score_sources.CarriedWord | None = None,
    tau: float | None = None,
    criterion: fix_steps.Criterion = "accuracy_under_target",
    calibration: fix_steps.Calibration = "auto",
    zeros: Literal["error", "smooth"] = "error",
    seed: int = 0,
    progress: Callable[[int], None] = _quiet,
    command: str = "longtail.fix",
) -> FixResult:
    """Fix a trained model without training it again: calibrate its scores, and move their prior.

    What is gained is measured on samples that nothing was fitted on: those of `apply` if they have
    labels, else each fifth of the validation samples by what was fitted on the others.

    Args:
        validation: Labelled scores that the model was not trained on: Scores, logits and labels, or
            a table of a file.
        apply: Other scores of the same model to adjust; by default those of validation.
        train: Training samples of each class.
        target: The prior to move to. "source" stays and only calibrates, "estimate" finds the
            prior of `apply`.
        output: A folder for scores.safetensors, adjuster.json and metrics.json. Rows of files are
            adjusted a block at a time then, and never in memory all at once.
        carried: What the scores carry: by default what they say themselves, else the training
            counts. "measure" fits it on the validation scores.
        tau: How far to move: 1 is all the way. None chooses it on the validation scores.
        criterion: What τ is chosen by.
        calibration: What is fitted before the move: a temperature, also a bias a class, also a
            scale a class. "auto" is "temperature", and "bias" where the target is estimated.
        zeros: Classes without training samples: refuse them, or add one half to every count.
        seed: Decides what is drawn at random.
        progress: Called with the number of rows written since the last call.
        command: What metrics.json and the page say has made them.

    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]] * 2
    >>> result = fix((logits, [0, 0, 0, 1, 1] * 2), train=[90, 10], calibration="none", tau=1.0)
    >>> result.scores.carried, result.before["accuracy"].value, result.after["accuracy"].value
    (Prior([0.5, 0.5]), 0.6, 0.4)
    """
    for word, words in (
        (criterion, fix_steps.Criterion),
        (calibration, fix_steps.Calibration),
        (target, fix_steps.TargetWord),
    ):
        if isinstance(word, str) and word not in get_args(words):
            raise ValueError(f"expected one of {', '.join(get_args(words))}, got {word!r}")

    # Inputs: the scores to fit on, those to adjust, and what both carry.
    source = score_sources.as_source(validation)
    rows = source if apply is None else score_sources.as_source(apply)
    counts = score_sources.counts_of(train, source)
    prior = score_sources.carried_by(source, carried, train, counts, zeros)
    score_sources.check_alike(rows, source, prior)
    labelled = scores_to_fit_on(source, prior, counts, seed)

    # Fit: calibration, target and move, on the validation scores.
    if isinstance(target, str) and target == "uniform":
        target = Prior.uniform(source.num_classes)
    elif not isinstance(target, str):
        target = Prior.of(target, zeros="keep", classes=source.classes)
    plan = Plan(target, tau, criterion, calibration, seed).resolved()
    asked, to_come = plan.as_json(), None
    if plan.target == "estimate":
        if apply is None:
            raise ValueError(
                "the target is estimated from scores of the samples to come: give them (--apply), "
                "or name a target"
            )
        to_come = score_sources.scores_to_estimate_from(rows, prior, seed)
    with _fitting_to(source):
        fitted = fix_steps.fit_steps(labelled, plan, to_come)
    adjuster = StoredAdjusters(fitted.steps, prior, source.classes)
    step = chain_affine(fitted.steps, prior, source.num_classes)
    # What was asked for, also where a given τ does not reach it.
    goal = plan.target if isinstance(plan.target, Prior) else fitted.target
    strength = tau_of(fitted.steps, goal)

    # Apply: all steps as one. Samples whose prior was estimated stand for themselves.
    is_new = apply is not None and rows.labels is not None
    under = None if fitted.estimate is not None else goal
    sums = score_sources.comparison_of(rows, under, counts) if is_new else None
    path = None if output is None else Path(output) / SCORES
    scores = score_sources.adjust(rows, step, counts, sums, path, progress)

    # Judge: on samples that nothing was fitted on.
    if is_new:
        before = scores_to_fit_on(rows, prior, counts, seed)
        after = adjusted(before, step)
        judgement = judge(before, after, goal, validation=labelled, tau=strength, comparison=sums)
    else:
        if fitted.estimate is not None:
            plan = replace(plan, target=goal, tau=1.0)
        with _fitting_to(source):
            before, after = fix_steps.cross_fitted(labelled, plan)
        judgement = judge(before, after, goal, tau=strength, is_cross_fitted=True)
    return FixResult(
        adjuster=adjuster,
        carried=prior,
        target=step.carried,
        estimate=fitted.estimate,
        judgement=judgement,
        measured=APPLIED if is_new else CROSS_FITTED,
        measured_on=name_of(rows if is_new else source),
        asked=asked,
        classes=source.classes,
        counts=counts,
        command=command,
        _scores=scores,
    ).written_to(output)


def fix_again(
    scores: SourceLike,
    adjuster: str | os.PathLike[str] | StoredAdjusters,
    train: PriorLike | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    progress: Callable[[int], None] = _quiet,
    command: str = "longtail.fix_again",
) -> FixResult:
    """Apply adjusters that were fitted before to scores of the same model; fit nothing.

    The arguments mean what they do for `fix`; `adjuster` is what it gave, or an adjuster.json.
    """
    source = score_sources.as_source(scores)
    stored = adjuster if isinstance(adjuster, StoredAdjusters) else load_adjusters(adjuster)
    if stored.classes and source.classes and stored.classes != source.classes:
        raise ValueError(
            f"the adjuster was fitted for the classes {', '.join(stored.classes[:3])}, ..., but "
            f"{name_of(source)} has {', '.join(source.classes[:3])}, ...; give scores of the same "
            "model"
        )
    counts, carried = score_sources.counts_of(train, source), source.carried or stored.carried
    step = chain_affine(stored.adjusters, carried, source.num_classes)
    is_labelled = source.labels is not None
    sums = score_sources.comparison_of(source, step.carried, counts) if is_labelled else None
    path = None if output is None else Path(output) / SCORES
    moved = score_sources.adjust(source, step, counts, sums, path, progress)
    judgement = None
    if sums is not None:
        before = scores_to_fit_on(source, carried, counts, seed=0)
        goal = step.carried or Prior.uniform(source.num_classes)
        strength = tau_of(stored.adjusters, goal)
        judgement = judge(before, adjusted(before, step), goal, tau=strength, comparison=sums)
    return FixResult(
        adjuster=stored,
        carried=carried,
        target=step.carried,
        estimate=None,
        judgement=judgement,
        measured=None if judgement is None else APPLIED,
        measured_on=name_of(source),
        asked={} if step.carried is None else {"target": fix_steps.target_json(step.carried)},
        classes=source.classes or stored.classes,
        counts=counts,
        command=command,
        _scores=moved,
    ).written_to(output)


@contextmanager
def _fitting_to(source: Source) -> Iterator[None]:
    try:
        yield
    except UnsettledError as error:
        raise ValueError(f"nothing can be fitted to {name_of(source)}: {error}") from error
