"""Fixing a trained model of yes/no labels: move its odds, choose thresholds, compare honestly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longtail import __version__
from longtail.core import LabelOdds, LabelScores, UnknownPriorError, measure_odds
from longtail.core.arrays import as_numpy
from longtail.core.label_odds import LabelOddsLike
from longtail.core.label_scores import check_sigmoid
from longtail.core.numbers import check_whole
from longtail.flows.fix_result import APPLIED, CROSS_FITTED
from longtail.flows.results import staged, write_json
from longtail.metrics.labels import (
    LabelAccumulator,
    LabelMetrics,
    average_precision,
    metrics_of,
)
from longtail.posthoc.threshold_search import Criterion
from longtail.posthoc.thresholds import Thresholds

FILES = ("scores.safetensors", "thresholds.json", "metrics.json")
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FixLabelsResult:
    """What a fix of yes/no labels came to."""

    thresholds: Thresholds  # for the adjusted scores
    scores: LabelScores  # those to adjust, moved
    carried: LabelOdds | None  # by the scores before, if that is known
    target: LabelOdds | None  # that they were moved to; None if they stayed
    before: LabelMetrics  # of what is more likely, by the scores as they came
    after: LabelMetrics  # of the thresholds, by the moved scores
    measured: Literal["cross-fitted", "applied"]

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word: NaN becomes null in the file."""
        values: dict[str, Any] = {
            "version": __version__,
            "family": "sigmoid",
            "classes": None if self.scores.classes is None else list(self.scores.classes),
            "carried": None if self.carried is None else self.carried.probs.tolist(),
            "target": None if self.target is None else self.target.probs.tolist(),
            "thresholds": self.thresholds.as_json(),
            "measured": self.measured,
        }
        for name, metrics in (("before", self.before), ("after", self.after)):
            each = {key: numbers.tolist() for key, numbers in metrics._asdict().items()}
            values[name] = {"macro": metrics.macro(), "per_label": each}
        return values

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write scores, thresholds and numbers."""
        self.scores.save(Path(folder) / FILES[0])
        self.thresholds.save(Path(folder) / FILES[1])
        write_json(Path(folder) / FILES[2], self.as_json())


def fix_labels(
    validation: LabelScores,
    apply: LabelScores | None = None,
    train: LabelOddsLike | None = None,
    target: LabelOddsLike | None = None,
    *,
    criterion: Criterion = "f1",
    at: float | None = None,
    output: str | os.PathLike[str] | None = None,
    carried: LabelOddsLike | Literal["measure"] | None = None,
    seed: int = 0,
) -> FixLabelsResult:
    """Fix a trained model of yes/no labels: move its logits to a target, and choose thresholds.

    What is gained is measured on samples that nothing was fitted on: those of `apply` if they have
    labels, else each fifth of the validation samples by what was fitted on the rest.

    Args:
        validation: Labelled scores of family="sigmoid" that the model was not trained on.
        apply: Other scores of the same model to adjust; by default those of validation.
        train: The odds of the training labels: what is carried where nothing else says it.
        target: The odds to move to; None leaves the logits where they are.
        criterion: What thresholds are chosen by, as in `posthoc.Thresholds.fit`; with `at`.
        at: The precision or the recall that is kept, for the criteria that keep one.
        output: A folder for scores.safetensors, thresholds.json and metrics.json.
        carried: What the scores carry: by default what they say themselves, else the training
            odds. "measure" fits it on the validation scores.
        seed: Deals the samples out to the fifths.

    >>> import longtail as lt
    >>> logits, labels = [[2.0], [1.0], [0.5], [-1.0], [-2.0]] * 4, [[1], [1], [1], [0], [0]] * 4
    >>> validation = lt.Scores([[z - 1.5 for z in row] for row in logits], labels, family="sigmoid")
    >>> result = fix_labels(validation)
    >>> result.before.f1.tolist(), result.after.f1.tolist(), result.thresholds.logits.tolist()
    ([0.5], [1.0], [-1.0])
    """
    source = check_sigmoid(validation, "fix_labels")
    rows = source if apply is None else check_sigmoid(apply, "fix_labels")
    if source.labels is None:
        raise ValueError("a fix is fitted on labelled scores, but those of validation have none")
    if rows.num_labels != source.num_labels or (
        None is not rows.classes != source.classes is not None
    ):
        raise ValueError(
            f"apply has {rows.num_labels} labels and validation {source.num_labels}, or they name "
            "them differently; both must be scores of the same model"
        )
    goal = None if target is None else LabelOdds.of(target, source.classes)
    plan = _Plan(carried, train, goal, criterion, at)
    known = plan.carried_by(source)
    own = None if rows is source else rows.carried
    if own is not None and known is not None and not known.is_close(own):
        raise ValueError(
            f"apply says that it carries {own!r}, but what is fitted starts from {known!r}: the "
            "scores were adjusted already, or another model made them"
        )
    fitted = plan.fit(source, known)
    is_new = rows.labels is not None and not _are_same(rows, source)
    moved = plan.moved(rows, known)
    before = _under(rows if is_new else source, goal, None)
    after = _under(moved, goal, fitted) if is_new else _cross_fitted(source, plan, seed)
    facts = fitted, moved, known, goal, before, after
    result = FixLabelsResult(*facts, APPLIED if is_new else CROSS_FITTED)
    with staged(output, "fix_labels", FILES, ()) as folder:
        if folder is not None:
            result.write(folder)
    return result


@dataclass(frozen=True)
class _Plan:
    """What is fitted, on whatever samples."""

    carried: LabelOddsLike | Literal["measure"] | None
    train: LabelOddsLike | None
    target: LabelOdds | None
    criterion: Criterion
    at: float | None

    def carried_by(self, scores: LabelScores) -> LabelOdds | None:
        """What was said of the scores, else what they say, else the training odds, else None."""
        if isinstance(self.carried, str):
            if self.carried != "measure":
                raise ValueError(f'carried must be "measure" or odds, got {self.carried!r}')
            return measure_odds(scores)
        for said in (self.carried, scores.carried, self.train):
            if said is not None:
                return LabelOdds.of(said, scores.classes)
        return None

    def moved(self, scores: LabelScores, carried: LabelOdds | None) -> LabelScores:
        """The scores under the target, if there is one."""
        told = replace(scores, carried=carried)
        if self.target is None:
            return told
        if carried is None:
            raise UnknownPriorError("these scores carry no known odds", "measure_odds")
        return told.under(self.target)

    def fit(self, scores: LabelScores, carried: LabelOdds | None) -> Thresholds:
        """Thresholds for the moved scores."""
        told = replace(scores, carried=carried)
        return Thresholds.fit(told, self.criterion, self.at, self.target)


def _are_same(one: LabelScores, other: LabelScores) -> bool:
    """Whether these are the same samples, which would be measured by what they were fitted to."""
    if one is other:
        return True
    return np.array_equal(as_numpy(one.logits), as_numpy(other.logits))


def _under(
    scores: LabelScores, target: LabelOdds | None, thresholds: Thresholds | None
) -> LabelMetrics:
    """Metrics of scores as they are, each sample counted as the target says."""
    sums = LabelAccumulator.of(scores, target, thresholds)
    return metrics_of(sums, average_precision(scores, target))


def _cross_fitted(scores: LabelScores, plan: _Plan, seed: int) -> LabelMetrics:
    """Of the samples that were fitted on, each fifth by a fit on the others."""
    sums = LabelAccumulator(scores.num_labels, plan.target)
    for held in _fifths(len(scores), seed):
        others = scores.take(~held)
        carried = plan.carried_by(others)
        fitted, own = plan.fit(others, carried), plan.moved(scores.take(held), carried)
        part = LabelAccumulator.of(own, plan.target, fitted)
        sums = sums + part
    return metrics_of(sums, average_precision(scores, plan.target))


def _fifths(samples: int, seed: int) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
    random = np.random.default_rng(check_whole(seed, "seed", least=0))
    fold = random.permutation(samples) % min(_FOLDS, samples)
    for at in range(int(fold.max()) + 1):
        yield fold == at
