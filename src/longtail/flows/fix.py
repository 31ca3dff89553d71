"""Fixing a trained model: fit on validation scores, adjust them or others, compare honestly."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from longtail.core import GroupEdges, GroupsLike, Prior, PriorLike, Scores
from longtail.core.costs import CostsLike
from longtail.core.threads import one_blas_thread
from longtail.flows import file_names, fix_rows, fix_steps, score_sources
from longtail.flows.decisions import Decider, fit_sets
from longtail.flows.file_names import SCORES
from longtail.flows.fix_folds import ByFold, cross_fitted, fitting_to
from longtail.flows.fix_inputs import (
    FeatureFile,
    asked_of,
    features_of_both,
    prior_of_both,
    unlabelled_scores,
)
from longtail.flows.fix_result import APPLIED, CROSS_FITTED, FixResult
from longtail.flows.fix_steps import Plan, tau_of
from longtail.flows.judge import Judgement
from longtail.flows.results import staged
from longtail.flows.samples import BeforeAfter, Integers
from longtail.flows.score_sources import MOST_SHOWN, Source, SourceLike, TrainLike, name_of
from longtail.posthoc import Affine, StoredAdjusters, chain_affine, load_adjusters
from longtail.posthoc.conformal import Mode, check_asked
from longtail.shift import check_only_prior_changed

_Page: TypeAlias = Callable[[FixResult, Path], object]


@one_blas_thread()
def fix(
    validation: SourceLike,
    apply: SourceLike | None = None,
    train: TrainLike | None = None,
    target: PriorLike | fix_steps.TargetWord = "uniform",
    *,
    unlabelled: SourceLike | None = None,
    features: FeatureFile | None = None,
    validation_features: FeatureFile | None = None,
    output: str | os.PathLike[str] | None = None,
    page: _Page = lambda result, folder: None,
    carried: PriorLike | score_sources.CarriedWord | None = None,
    tau: float | Literal["auto"] | None = "auto",
    criterion: fix_steps.Criterion = "accuracy_under_target",
    calibration: fix_steps.Calibration = "auto",
    zeros: Literal["error", "smooth"] = "error",
    groups: GroupsLike | None = None,
    costs: CostsLike | str | Path | None = None,
    abstain: float | None = None,
    sets: float | None = None,
    sets_mode: Mode = "tail",
    seed: int = 0,
    progress: Callable[[int], None] = lambda rows: None,
    command: str = "longtail.fix",
) -> FixResult:
    """Fix a trained model without training it again: calibrate its scores, and move their prior.

    What is gained is measured on samples that nothing was fitted on: those of `apply` if they have
    labels and are others, else each fifth of the validation samples by what was fitted on the rest.

    Args:
        validation: Labelled scores that the model was not trained on: Scores, logits and labels, or
            a table of a file.
        apply: Other scores of the same model to adjust; by default those of validation.
        train: Training samples of each class, or a file of them or of training labels.
        target: The prior to move to. "source" stays and only calibrates, "estimate" finds the
            prior of `apply`.
        unlabelled: Scores of samples that follow the target, maybe those of `apply`: what is
            carried is measured on them, without labels (`posthoc.MarginalMatching`); with no τ.
        features: Of the samples of `apply`, a row each, or a file of them: neighbours help to
            estimate the target.
        validation_features: Of the validation samples, from the same network.
        output: A folder for scores.safetensors, adjuster.json and metrics.json, made if it is not
            there; what another command wrote there is refused. Rows of files are adjusted a block
            at a time then, and never in memory all at once.
        page: Writes a page on the result beside the other files: `longtail.report.save`.
        carried: What the scores carry: by default what they say themselves, else the training
            counts. "measure" fits it on the validation scores.
        tau: How far to move: 1 is all the way. "auto" chooses it on the validation scores.
        criterion: What τ is chosen by.
        calibration: What is fitted before the move: a temperature, also a bias a class, also a
            scale a class. "auto" is "temperature", and "bias" where the target is estimated.
        zeros: Classes without training samples: refuse them, or add one half to every count.
        groups: The edges of many, medium and few, such as "many=100,few=20,inclusive".
        costs: What mistakes cost, as `Scores.decide` takes it, or a file (`data.read_costs`): the
            adjusted scores are decided by it, under the target.
        abstain: What it costs not to decide.
        sets: How often a set of classes is to hold the true one, such as 0.9: fits a
            `posthoc.ConformalSets` on the adjusted scores, under the target.
        sets_mode: What is covered so often: "tail", "marginal" or "class".
        seed: Decides what is drawn at random.
        progress: Called with the number of rows written since the last call.
        command: What metrics.json and the page say has made them.

    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]] * 2
    >>> result = fix((logits, [0, 0, 0, 1, 1] * 2), train=[90, 10], calibration="none", tau=1.0)
    >>> result.scores.carried, result.before["accuracy"].value, result.after["accuracy"].value
    (Prior([0.5, 0.5]), 0.6, 0.4)
    """
    # Inputs: the scores to fit on, those to adjust, and what both carry.
    edges, source = GroupEdges.of(groups), score_sources.as_source(validation)
    rows = source if apply is None else score_sources.as_source(apply)
    plan = Plan.of(target, tau, criterion, calibration, seed, source.classes or source.num_classes)
    counts = score_sources.counts_of(train, source)
    decider = Decider.of(costs, abstain, source)
    if sets is not None:
        check_asked(sets, sets_mode)
    elif sets_mode != "tail":
        raise ValueError("sets_mode is that of sets: give sets=0.9, too, or leave it out")
    prior = prior_of_both(source, rows, carried, train, counts, zeros)
    some = score_sources.rows_to_fit_on(source, seed)
    labelled = score_sources.scores_in_memory(source, prior, counts, some)
    # Fit: calibration, target and move, on the validation scores.
    followers = None if unlabelled is None else score_sources.as_source(unlabelled)
    others = unlabelled_scores(followers, None if apply is None else rows, source, plan, labelled)
    near = features_of_both(features, validation_features, rows, source, plan, some)
    with fitting_to(source):
        fitted = fix_steps.fit_steps(labelled, plan, others, near)
    # What was asked for, also where a τ that was given does not reach it.
    goal = fix_steps.target_of(fitted.steps) or fitted.target
    step = chain_affine(fitted.steps, prior, source.num_classes)
    move = _Move(step, prior, goal, tau_of(fitted.steps, goal), counts, edges, seed)
    inputs = (source, rows, train, followers, features, validation_features)
    files = score_sources.paths_of(*inputs)
    with staged(output, "fix", file_names.FIX_ALL, files) as folder:
        # Apply, and judge on samples that nothing was fitted on.
        is_same = apply is not None and score_sources.are_same_samples(source, rows)
        is_other = apply is not None and not is_same
        is_new = is_other and rows.labels is not None
        under = goal if fitted.estimate is None else None  # else they stand for themselves
        scores, before, judgement = _applied(
            rows, move, folder, progress, is_new, under, labelled, is_other and others is None
        )
        # Whether p(x|y) stayed: of what says where to move, else of what is moved.
        looked_at = before if others is None and is_other else others
        shift = None
        if looked_at is not None:
            shift = check_only_prior_changed(looked_at, labelled, seed=seed)
        made = None
        if judgement is None or sets is not None:
            same, following = plan, others
            if fitted.estimate is not None:
                same, following = replace(plan, target=goal, tau=1.0), None
            by_fold = cross_fitted(source, labelled, some, same, following)
            judgement = judgement or _judged_by_fold(source, labelled, some, by_fold, move)
            made = None if sets is None else fit_sets(by_fold.after, sets, sets_mode, goal)
        result = FixResult(
            adjuster=StoredAdjusters(fitted.steps, prior, source.classes),
            carried=prior,
            carried_after=step.carried,
            estimate=fitted.estimate,
            judgement=judgement,
            measured=APPLIED if is_new else CROSS_FITTED,
            measured_on=name_of(rows if is_new else source),
            asked=asked_of(plan, followers, features),
            classes=source.classes,
            counts=counts,
            command=command,
            _scores=scores,
            is_applied_to_validation=is_same,
            shift=shift,
            is_shift_unchecked=shift is None and looked_at is not None,
            decider=decider and replace(decider, target=goal),
            sets=made,
        )
        return _written(result, folder, output, page)


@one_blas_thread()
def fix_again(
    scores: SourceLike,
    adjuster: str | os.PathLike[str] | StoredAdjusters,
    train: TrainLike | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    page: _Page = lambda result, folder: None,
    groups: GroupsLike | None = None,
    costs: CostsLike | str | Path | None = None,
    abstain: float | None = None,
    progress: Callable[[int], None] = lambda rows: None,
    command: str = "longtail.fix_again",
) -> FixResult:
    """Apply adjusters that were fitted before to scores of the same model; fit nothing.

    The arguments mean what they do for `fix`; `adjuster` is what it gave, or an adjuster.json.
    """
    source, edges = score_sources.as_source(scores), GroupEdges.of(groups)
    stored = adjuster if isinstance(adjuster, StoredAdjusters) else load_adjusters(adjuster)
    if stored.classes and source.classes and stored.classes != source.classes:
        raise ValueError(
            f"the adjuster was fitted for the classes {', '.join(stored.classes[:3])}, ..., but "
            f"{name_of(source)} has {', '.join(source.classes[:3])}, ...; give scores of the same "
            "model"
        )
    counts, carried = score_sources.counts_of(train, source), source.carried or stored.carried
    step = chain_affine(stored.adjusters, carried, source.num_classes)
    target = fix_steps.target_of(stored.adjusters) or step.carried
    goal = target or Prior.uniform(source.num_classes)
    decider = Decider.of(costs, abstain, source)
    move = _Move(step, carried, goal, tau_of(stored.adjusters, goal), counts, edges)
    inputs = score_sources.paths_of(source, train, adjuster)
    with staged(output, "fix", file_names.FIX_ALL, inputs) as folder:
        has_labels = source.labels is not None
        moved, _, judgement = _applied(source, move, folder, progress, has_labels, goal)
        result = FixResult(
            adjuster=stored,
            carried=carried,
            carried_after=step.carried,
            estimate=None,
            judgement=judgement,
            measured=None if judgement is None else APPLIED,
            measured_on=name_of(source),
            asked={} if target is None else {"target": fix_steps.target_json(target)},
            classes=source.classes or stored.classes,
            counts=counts,
            command=command,
            _scores=moved,
            decider=decider and replace(decider, target=goal),
        )
        return _written(result, folder, output, page)


class _Move(NamedTuple):
    """All adjusters as one, and what their judgement depends on."""

    step: Affine
    carried: Prior | None  # before
    goal: Prior
    tau: float | None  # how far they move towards the goal
    counts: Integers | None
    edges: GroupEdges
    seed: int = 0


def _applied(
    rows: Source,
    move: _Move,
    folder: Path | None,
    progress: Callable[[int], None],
    is_judged: bool,
    under: Prior | None,
    validation: Scores | None = None,
    is_kept: bool = False,
) -> tuple[Scores | Path, Scores, Judgement | None]:
    """The adjusted rows, and if they are to be judged before and after, counted on the way.

    The second are rows before: those that are shown, else if they are to be kept a part of all.
    """
    sums = fix_rows.no_sums(rows, under, move.counts, move.edges) if is_judged else None
    path = None if folder is None else folder / SCORES
    shown: Integers | None = np.zeros(0, np.int64)
    if is_judged:
        shown = score_sources.rows_to_fit_on(rows, move.seed, MOST_SHOWN)
    elif is_kept:
        shown = score_sources.rows_to_estimate_from(rows, move.seed, MOST_SHOWN)
    scores, before = fix_rows.adjust(rows, move.step, move.counts, sums, path, progress, shown)
    before = replace(before, carried=move.carried)
    if sums is None:
        return scores, before, None
    after = fix_rows.adjusted(before, move.step)
    samples = BeforeAfter(before, after, move.goal, validation, tau=move.tau, edges=move.edges)
    return scores, before, Judgement(samples, sums)


def _judged_by_fold(
    source: Source, labelled: Scores, some: Integers | None, by_fold: ByFold, move: _Move
) -> Judgement:
    """With sums of all samples."""
    folds, steps, after = by_fold
    goal, edges, whole = move.goal, move.edges, labelled if some is None else source
    with fitting_to(source):
        sums = fix_rows.sums_by_fold(whole, steps, folds, goal, labelled.counts, edges)
    samples = BeforeAfter(labelled, after, goal, tau=move.tau, is_cross_fitted=True, edges=edges)
    return Judgement(samples, sums)


def _written(
    result: FixResult, folder: Path | None, output: str | os.PathLike[str] | None, page: _Page
) -> FixResult:
    """The same, with all files in the folder, from which they go to the output together."""
    if folder is None or output is None:
        return result
    result.write(folder)
    page(result, folder)
    in_memory = not isinstance(result._scores, Path)
    return result if in_memory else replace(result, _scores=Path(output) / SCORES)
