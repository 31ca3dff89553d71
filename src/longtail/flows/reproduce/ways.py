"""The ways to predict with a run that tables ask for, and the scores that each of them gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import Indices, as_numpy
from longtail.data import shifted_subset
from longtail.data.subsets import Direction
from longtail.flows.folds import by_best_tau
from longtail.flows.reproduce.experiment import Cell, Column, Experiment, Run, Variant
from longtail.flows.reproduce.plan import head_name, settled
from longtail.flows.score_measures import DRAWN_OF, SCORE_MEASURES
from longtail.posthoc import LogitAdjustment, WeightNormalization
from longtail.posthoc.tau.curve import tau_curve, weight_norm_curve

BALANCED = "balanced"
PROBABILITIES = ("ece", "classwise_ece", "brier", "nll")  # measures that more than answers decide
OF_ANSWERS = ("accuracy", "balanced_error", "error", "geometric_mean", *PROBABILITIES)
RELIABILITY = "reliability"  # drawn of answers


class Way(NamedTuple):
    """One way to predict with a run, and the test set it is for."""

    head: str  # as its file is called; "" for the trained one
    variant: Variant
    test: str

    @classmethod
    def of(cls, cell: Cell, column: Column) -> Way:
        """That of a cell, in a column."""
        # What is not moved answers the same on every test set.
        test = BALANCED if cell.variant == "as trained" else column.test
        return cls(head_name(cell.head, cell.batch_norm), cell.variant, test)

    @property
    def key(self) -> str:
        """As files name it."""
        return "|".join(self)


def prior_of_test(labels: Indices, counts: Indices, test: str) -> Prior:
    """The prior of a test set: "balanced", or "forward-50" for the shifted one (LADE §4.3)."""
    if test == BALANCED:
        return Prior.uniform(len(counts))
    direction, _, ratio = test.partition("-")
    way: Direction = "forward" if direction == "forward" else "backward"
    at = as_numpy(shifted_subset(labels, counts, float(ratio), way))
    return Prior.of(np.bincount(labels[at], minlength=len(counts)))


def moved(scores: Scores[Any], way: Way, norms: Iterable[float] | None) -> Scores[Any] | None:
    """The scores as a variant predicts; None if what it takes is not known."""
    labels = as_numpy(scores.labels).astype(np.int64)
    target = prior_of_test(labels, as_numpy(scores.counts), way.test)
    try:
        if way.variant == "under the target":
            return scores.under(target)
        if way.variant == "from uniform":
            uniform = Prior.uniform(scores.num_classes)
            return replace(scores, carried=uniform).under(target)
        if way.variant == "best tau":
            if (carried := scores.carried) is None:
                return None
            return by_best_tau(
                scores,
                lambda rows, truth: tau_curve(rows, truth, carried, target),
                lambda tau: LogitAdjustment(carried, tau, target),
            )
        if way.variant == "best weight norm":
            if norms is None:
                return None
            lengths = np.asarray(list(norms), dtype=np.float64)
            return by_best_tau(
                scores,
                lambda rows, truth: weight_norm_curve(rows, truth, lengths, target),
                lambda tau: WeightNormalization(lengths, tau),
            )
    except UnknownPriorError:
        return None
    return scores


def asked(experiments: Iterable[Experiment]) -> dict[Run, dict[Way, bool]]:
    """Of every run the ways to predict that some table asks for, and whether for probabilities."""
    ways: dict[Run, dict[Way, bool]] = {}
    for experiment in experiments:
        for quick in (False, True):
            for cell in settled(experiment, quick).cells:
                for column in experiment.columns:
                    if column.data == cell.data:
                        of_run, way = ways.setdefault(cell.run, {}), Way.of(cell, column)
                        of_run[way] = of_run.get(way, False) or column.measure in PROBABILITIES
    return ways


def measures_asked(experiments: Iterable[Experiment]) -> dict[Run, tuple[str, ...]]:
    """Of every run what some figure measures or draws of its features and head."""
    of_scores = {*OF_ANSWERS, *SCORE_MEASURES, RELIABILITY, "setting", "statistic", "property"}
    measures: dict[Run, dict[str, None]] = {}
    for experiment in experiments:
        for quick in (False, True):
            for cell in settled(experiment, quick).cells:
                for column in experiment.columns:
                    if column.data != cell.data:
                        continue
                    drawn_of = (*DRAWN_OF.get(column.measure, ()), *experiment.draws)
                    for name in (column.measure, *drawn_of):
                        if name not in of_scores:
                            measures.setdefault(cell.run, {})[name] = None
    return {run: tuple(names) for run, names in measures.items()}
