r"""From kept runs to the numbers of a table, and how sure they are.

A measure of a model is a sum over test samples, or nearly one: ψ_i is what sample i adds to it,

    accuracy          w(y_i) · right_i,                w(y) the class's share over its samples
    NLL, Brier        w(y_i) · term_i
    ECE               ±(right_i − confidence_i)/N,     the sign of its bin's gap
    class-wise        1/CN Σ_c ±(1[y_i = c] − p(c|x_i)), likewise: the usual form, whose numbers are
                      those of LADE's tables, other than what its eq. 29 prints
    geometric mean    G/C · right_i / (n_y · recall_y),          what it changes by in first order

so that a difference of two rows has ψ_i of one less those of the other: pairs of the same samples.
What is measured once a class is a mean over classes, which then take the place of the samples; of a
drawn problem trials do. `noise.spread` says how sure a sum of ψ is: over samples with one seed,
over seeds and samples with several. What is none of these has an interval only over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.flows.noise import Difference, spread
from longtail.flows.reproduce.experiment import Cell, Column
from longtail.flows.reproduce.kept import BALANCED, PROBABILITIES, Answers, Kept, Way
from longtail.flows.reproduce.measures import MEASURES, Edges
from longtail.flows.score_measures import SCORE_MEASURES
from longtail.metrics.recall import geometric_means, ratio
from longtail.metrics.terms import bin_of
from longtail.stats import Part, student_reach

Over: TypeAlias = Literal["test samples", "classes", "trials"]
_LEVEL = 0.05
_NO_RECALL = 0.001


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of one cell."""

    seeds: tuple[int, ...]
    values: Floats  # one a seed; with a second axis one a class or a point of a curve
    terms: Floats | None = None  # ψ, of shape (seeds, samples)
    labels: Indices | None = None  # what the samples are drawn within
    over: Over = "test samples"
    counts: Indices | None = None  # training samples of each class, of a measure of classes

    def of_seeds(self, seeds: Sequence[int]) -> Measured:
        """The same of some seeds."""
        at = [self.seeds.index(seed) for seed in seeds]
        terms = None if self.terms is None else self.terms[at]
        return Measured(tuple(seeds), self.values[at], terms, self.labels, self.over, self.counts)

    def is_of_the_samples_of(self, other: Measured) -> bool:
        """Whether ψ of both are of the same samples."""
        return (
            self.terms is not None
            and other.terms is not None
            and self.over == other.over
            and np.array_equal(as_numpy(self.labels), as_numpy(other.labels))
        )


@dataclass(frozen=True)
class Sum:
    """A sum of measures with factors, such as a difference, and what it varies by."""

    value: float
    seeds: int
    parts: tuple[Difference, ...]  # independent ones
    by_seeds: tuple[float, ...] = ()  # values a seed of what has no terms
    over: str = ""  # what the interval is over

    def reach(self, level: float = _LEVEL) -> float | None:
        """How far it may lie from its value, but for a probability of `level`; None if unknown."""
        squares = [part.reach(level) ** 2 for part in self.parts]
        if self.by_seeds:
            if len(self.by_seeds) < 2:
                return None
            values = np.array(self.by_seeds)
            error = float(values.std(ddof=1)) / math.sqrt(len(values))
            squares.append((student_reach(level, len(values) - 1) * error) ** 2)
        return math.sqrt(sum(squares))


def summed(terms: Sequence[tuple[float, Measured]]) -> Sum | None:
    """Σ factor · measure over the seeds that all have; None if there is no such seed."""
    seeds = [seed for seed in terms[0][1].seeds if all(seed in each.seeds for _, each in terms[1:])]
    if not seeds:
        return None
    groups: list[tuple[Measured, Floats, Floats]] = []  # values and ψ of the same samples
    alone = np.zeros(len(seeds))
    has_alone = False
    for factor, each in terms:
        part = each.of_seeds(seeds)
        if part.terms is None:
            alone, has_alone = alone + factor * part.values, True
            continue
        values, psi = factor * part.values, factor * part.terms
        for at, (first, others, sums) in enumerate(groups):
            if part.is_of_the_samples_of(first):
                groups[at] = first, others + values, sums + psi
                break
        else:
            groups.append((part, values, psi))
    parts = tuple(
        _over_trials(psi) if first.over == "trials" else spread(values, psi, as_numpy(first.labels))
        for first, values, psi in groups
    )
    total = sum(part.value for part in parts) + float(alone.mean())
    overs = dict.fromkeys(first.over for first, _, _ in groups)
    words = [*(["seeds"] if len(seeds) > 1 else []), *overs]
    return Sum(total, len(seeds), parts, tuple(alone) if has_alone else (), " and ".join(words))


def _over_trials(psi: Floats) -> Difference:
    """Of a mean over trials, of all seeds, each drawn anew: as of any independent numbers."""
    terms = psi.ravel() / len(psi)
    part = Part(float(terms.var(ddof=1)) * len(terms), len(terms) - 1)
    return Difference(float(terms.sum()), None, part, 0.0, len(psi), by_seed=True)


def measured(kept: Mapping[int, Kept], cell: Cell, column: Column, edges: Edges) -> Measured | None:
    """A column of a cell, of the seeds that have it; None if none has."""
    one = _one_of(column.measure)
    parts = {
        seed: _of_trials(each, cell, column) or one(each, cell, column, edges)
        for seed, each in kept.items()
    }
    there = {seed: part for seed, part in parts.items() if part is not None}
    if not there:
        return None
    first = next(iter(there.values()))
    alike = {
        seed: part
        for seed, part in there.items()
        if part.values.shape == first.values.shape
        and (first.terms is None or part.is_of_the_samples_of(first))
    }
    return Measured(
        tuple(alike),
        np.concatenate([part.values for part in alike.values()]),
        None
        if first.terms is None
        else np.concatenate([as_numpy(p.terms) for p in alike.values()]),
        first.labels,
        first.over,
        first.counts,
    )


_One: TypeAlias = Callable[[Kept, Cell, Column, Edges], Measured | None]


def _one_of(measure: str) -> _One:
    if measure in _SUMS:
        return _from_answers
    return _from_scores if measure in SCORE_MEASURES else _from_numbers


def _single(value: float, psi: Floats, labels: Indices, over: Over = "test samples") -> Measured:
    return Measured((0,), np.array([value]), psi[None], labels, over)


def _from_answers(kept: Kept, cell: Cell, column: Column, edges: Edges) -> Measured | None:
    answers = kept.answered(Way.of(cell, column), column.measure in PROBABILITIES)
    if answers is None:
        return None
    shares = _shares(answers, column, edges)
    if shares is None:
        return None
    psi, value = _SUMS[column.measure](answers, shares)
    if psi is not None:
        return _single(value, psi, answers.labels)
    number = (kept.numbers or {}).get(Way.of(cell, column).key, {}).get(column.measure)
    return None if number is None else Measured((0,), np.array([number]))


def probability_measures(answers: Answers) -> dict[str, float]:
    """What is measured of probabilities, in six digits: how sure each answer was is known."""
    alike = np.ones(len(answers.counts))  # classes count by their samples here
    values = {name: _SUMS[name](answers, alike)[1] for name in PROBABILITIES}
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _shares(answers: Answers, column: Column, edges: Edges) -> Floats | None:
    """What each class counts for; None for a group without classes."""
    if column.test != BALANCED:
        return answers.prior(column.test).probs
    present = np.bincount(answers.labels, minlength=len(answers.counts)) > 0
    counted = (present & group_mask(answers.counts, column.group, edges)).astype(np.float64)
    return counted / counted.sum() if counted.any() else None


def group_mask(counts: Indices, group: str, edges: Edges) -> npt.NDArray[np.bool_]:
    """Which classes are of a group; "" for all."""
    many, few = counts >= edges.many, counts <= edges.few
    masks = {"many": many, "few": few, "medium": ~many & ~few}
    return masks.get(group, np.ones(len(counts), dtype=bool))


_Sums: TypeAlias = tuple[Floats | None, float]  # ψ and the value


def _weights(answers: Answers, shares: Floats) -> Floats:
    samples = np.bincount(answers.labels, minlength=len(shares))
    return (shares / np.maximum(samples, 1))[answers.labels]


def _accuracy(answers: Answers, shares: Floats) -> _Sums:
    psi = 100 * _weights(answers, shares) * answers.right
    return psi, float(psi.sum())


def _error(answers: Answers, shares: Floats) -> _Sums:
    psi, value = _accuracy(answers, shares)
    return (None if psi is None else -psi), 100 - value


def _mean(terms: Floats | None) -> _Sums:
    """Of a term over all test samples, as they are."""
    return (None, math.nan) if terms is None else (terms / len(terms), float(terms.mean()))


def _ece(answers: Answers) -> _Sums:
    if answers.confidence is None:
        return None, math.nan
    gaps, bins = answers.right - answers.confidence, bin_of(answers.confidence)
    return _mean(np.sign(np.bincount(bins, gaps))[bins] * gaps)


def _geometric_mean(answers: Answers, shares: Floats) -> _Sums:
    counts = np.bincount(answers.labels, minlength=len(shares)).astype(np.float64)
    right = np.bincount(answers.labels[answers.right], minlength=len(shares))
    recall = ratio(right.astype(np.float64), counts)
    value = 100 * float(geometric_means(recall[counts > 0], _NO_RECALL))
    rate = value / (counts > 0).sum() / (counts * np.maximum(recall, _NO_RECALL))
    return rate[answers.labels] * answers.right, value


_SUMS: dict[str, Callable[[Answers, Floats], _Sums]] = {
    "accuracy": _accuracy,
    "balanced_error": _error,
    "error": _error,
    "nll": lambda answers, shares: _mean(answers.nll),
    "brier": lambda answers, shares: _mean(answers.brier),
    "ece": lambda answers, shares: _ece(answers),
    "classwise_ece": lambda answers, shares: _mean(answers.classwise),
    "geometric_mean": _geometric_mean,
}


def _from_scores(kept: Kept, cell: Cell, column: Column, edges: Edges) -> Measured | None:
    scores = kept.moved(Way.of(cell, column))
    if scores is None or kept.counts is None:
        return None
    return _of_value(SCORE_MEASURES[column.measure](scores), column, kept.counts, edges)


def _of_trials(kept: Kept, cell: Cell, column: Column) -> Measured | None:
    """Of a drawn problem, whose numbers are one a trial."""
    trials = (kept.numbers or {}).get(f"{cell.head}|{cell.variant}", {})
    measure = f"{column.measure} {column.group}".strip()
    if measure not in trials:
        return None
    values = np.asarray(trials[measure], dtype=np.float64)
    no_classes = np.zeros(len(values), dtype=np.int64)
    return _single(float(values.mean()), values / len(values), no_classes, "trials")


def _from_numbers(kept: Kept, cell: Cell, column: Column, edges: Edges) -> Measured | None:
    value, counts = (kept.numbers or {}).get(column.measure), kept.counts
    return None if value is None or counts is None else _of_value(value, column, counts, edges)


def _of_value(value: object, column: Column, counts: Indices, edges: Edges) -> Measured | None:
    """Of one number, or of one for each class or point: the mean of the group if one is asked."""
    numbers = np.asarray(value, dtype=np.float64)
    if MEASURES[column.measure].per != "model":
        return Measured((0,), numbers[None], counts=counts)
    if numbers.ndim == 0:
        return Measured((0,), numbers[None])
    seen = group_mask(counts, column.group, edges) & ~np.isnan(numbers)
    if not seen.any():
        return None
    psi = numbers[seen] / seen.sum()
    return _single(float(psi.sum()), psi, np.zeros(len(psi), dtype=np.int64), "classes")
