r"""From kept runs to the numbers of a table, and how sure they are.

A measure of a model is a sum over test samples, or nearly one: ψ_i is what sample i adds to it,

    accuracy          w(y_i) · right_i,                w(y) the class's share over its samples
    NLL, Brier        w(y_i) · term_i
    ECE               ±(right_i − confidence_i)/N,     the sign of its bin's gap
    class-wise        1/CN Σ_c ±(1[y_i = c] − p(c|x_i)), likewise: the usual form, whose numbers are
                      those of LADE's tables, other than what its eq. 29 prints
    geometric mean    G/C · right_i / (n_y · recall_y),          what it changes by in first order;
                      none where a recall is 0, whose samples do not say what it varies by

so that a difference of two rows has ψ_i of one less those of the other: pairs of the same samples.
What is measured once a class is a mean over classes, which then take the place of the samples; of a
drawn problem trials do. `noise.spread` says how sure a sum of ψ is: over samples with one seed,
over seeds and samples with several. What is none of these has an interval only over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.flows.noise import Contrast, spread
from longtail.flows.reproduce.experiment import Cell, Column
from longtail.flows.reproduce.kept import Answers, Kept
from longtail.flows.reproduce.measures import GROUPS, MEASURES, Edges, group_mask
from longtail.flows.reproduce.ways import BALANCED, PROBABILITIES, Way
from longtail.flows.score_measures import SCORE_MEASURES
from longtail.metrics.terms import bin_of
from longtail.stats import Interval, Part, student_reach

Over: TypeAlias = Literal["test samples", "classes", "trials"]
_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class CellMeasure:
    """A measure of one cell."""

    seeds: tuple[int, ...]
    values: Floats  # one a seed; with a second axis one a class or a point of a curve
    terms: Floats | None = None  # ψ, of shape (seeds, samples)
    labels: Indices | None = None  # what the samples are drawn within
    weight: Floats | None = None  # of one sample of each class; it is in ψ
    over: Over = "test samples"
    counts: Indices | None = None  # training samples of each class, of a measure of classes

    def of_seeds(self, seeds: Sequence[int]) -> CellMeasure:
        """The same of some seeds."""
        at = [self.seeds.index(seed) for seed in seeds]
        terms = None if self.terms is None else self.terms[at]
        return replace(self, seeds=tuple(seeds), values=self.values[at], terms=terms)

    def is_of_the_samples_of(self, other: CellMeasure) -> bool:
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
    parts: tuple[Contrast, ...]  # independent ones
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

    def interval(self, level: float = _LEVEL, apart: float = 0.0) -> Interval:
        """The value, `apart` added to it, with its ends where they are known."""
        reach, value = self.reach(level), self.value + apart
        return Interval(value) if reach is None else Interval(value, value - reach, value + reach)


def summed(terms: Sequence[tuple[float, CellMeasure]]) -> Sum | None:
    """Σ factor · measure over the seeds that all have; None if there is no such seed."""
    seeds = [seed for seed in terms[0][1].seeds if all(seed in each.seeds for _, each in terms[1:])]
    if not seeds:
        return None
    groups: list[CellMeasure] = []  # sums of those of the same samples
    alone = np.zeros(len(seeds))
    has_alone = False
    for factor, each in terms:
        part = each.of_seeds(seeds)
        if part.terms is None:
            alone, has_alone = alone + factor * part.values, True
            continue
        weight = abs(factor) * as_numpy(part.weight)
        part = replace(part, values=factor * part.values, terms=factor * part.terms, weight=weight)
        for at, group in enumerate(groups):
            if part.is_of_the_samples_of(group):
                groups[at] = _added(group, part)
                break
        else:
            groups.append(part)
    parts = tuple(_spread(group) for group in groups)
    total = sum(part.value for part in parts) + float(alone.mean())
    overs = dict.fromkeys(group.over for group in groups)
    words = [*(["seeds"] if len(seeds) > 1 else []), *overs]
    return Sum(total, len(seeds), parts, tuple(alone) if has_alone else (), " and ".join(words))


def _added(one: CellMeasure, other: CellMeasure) -> CellMeasure:
    """The sum of two of the same samples, each of which counts as much as in both together."""
    return replace(
        one,
        values=one.values + other.values,
        terms=as_numpy(one.terms) + as_numpy(other.terms),
        weight=as_numpy(one.weight) + as_numpy(other.weight),
    )


def _spread(group: CellMeasure) -> Contrast:
    psi, labels, weight = (as_numpy(e) for e in (group.terms, group.labels, group.weight))
    if group.over == "trials":
        # Of all seeds, each with draws of its own: as of any independent numbers.
        terms = psi.ravel() / len(psi)
        part = Part(float(terms.var(ddof=1)) * len(terms), len(terms) - 1)
        return Contrast(float(terms.sum()), None, part, 0.0, len(psi), by_seed=True)
    return spread(group.values, psi / np.where(weight > 0, weight, 1.0)[labels], labels, weight)


def measured(
    kept: Mapping[int, Kept], cell: Cell, column: Column, edges: Edges
) -> CellMeasure | None:
    """A column of a cell, of the seeds that have it; None if none has."""
    one = _from_scores if column.measure in SCORE_MEASURES else _from_numbers
    one = _from_answers if column.measure in _SUMS else one
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
        and (first.terms is None or part.terms is None or part.is_of_the_samples_of(first))
    }
    values = np.concatenate([part.values for part in alike.values()])
    terms = [part.terms for part in alike.values() if part.terms is not None]
    psi = np.concatenate(terms) if len(terms) == len(alike) else None
    return replace(first, seeds=tuple(alike), values=values, terms=psi)


def _single(
    value: float, terms: Floats, weight: Floats, labels: Indices, over: Over = "test samples"
) -> CellMeasure:
    psi = weight[labels] * terms
    return CellMeasure((0,), np.array([value]), psi[None], labels, weight, over)


def _from_answers(kept: Kept, cell: Cell, column: Column, edges: Edges) -> CellMeasure | None:
    answers = kept.answered(Way.of(cell, column), column.measure in PROBABILITIES)
    if answers is None:
        return None
    shares = _shares(answers, column, edges)
    if shares is None:
        return None
    terms, weight, value = _SUMS[column.measure](answers, shares)
    if terms is not None:
        return _single(value, terms, weight, answers.labels)
    number = (kept.numbers or {}).get(Way.of(cell, column).key, {}).get(column.measure, value)
    return None if math.isnan(number) else CellMeasure((0,), np.array([number]))


def probability_measures(answers: Answers) -> dict[str, float]:
    """What is measured of probabilities, in six digits: how sure each answer was is known."""
    alike = np.ones(len(answers.counts))  # classes count by their samples here
    values = {name: _SUMS[name](answers, alike)[2] for name in PROBABILITIES}
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _shares(answers: Answers, column: Column, edges: Edges) -> Floats | None:
    """What each class counts for; None for a group without classes."""
    if column.test != BALANCED:
        return answers.prior(column.test).probs
    present = np.bincount(answers.labels, minlength=len(answers.counts)) > 0
    counted = (present & group_mask(answers.counts, column.group, edges)).astype(np.float64)
    return counted / counted.sum() if counted.any() else None


_Sums: TypeAlias = tuple[Floats | None, Floats, float]  # ψ/weight, the classes' weight, the value


def _accuracy(answers: Answers, shares: Floats) -> _Sums:
    weight = 100 * shares / np.maximum(answers.sums.samples, 1)
    right = answers.right.astype(np.float64)
    return right, weight, float((weight[answers.labels] * right).sum())  # Σ ψ


def _error(answers: Answers, shares: Floats) -> _Sums:
    right, weight, value = _accuracy(answers, shares)
    return 1 - as_numpy(right), weight, 100 - value


def _mean(terms: Floats | None, shares: Floats) -> _Sums:
    """Of a term over all test samples, as they are."""
    if terms is None:
        return None, shares, math.nan
    return terms, np.full(len(shares), 1 / len(terms)), float(terms.mean())


def _ece(answers: Answers, shares: Floats) -> _Sums:
    if answers.confidence is None:
        return None, shares, math.nan
    signs = np.sign(answers.sums.bin_gaps)[bin_of(answers.confidence)]
    terms, weight, _ = _mean(signs * (answers.right - answers.confidence), shares)
    return terms, weight, answers.sums.ece


def _geometric_mean(answers: Answers, shares: Floats) -> _Sums:
    sums = answers.sums
    value = 100 * sums.geometric_mean
    if (sums.recalls == 0).any():
        return None, shares, value
    rate = value / (sums.samples > 0).sum() / (sums.samples * sums.recalls)
    return answers.right.astype(np.float64), np.nan_to_num(rate), value


_SUMS: dict[str, Callable[[Answers, Floats], _Sums]] = {
    "accuracy": _accuracy,
    "balanced_error": _error,
    "error": _error,
    "nll": lambda answers, shares: _mean(answers.nll, shares),
    "brier": lambda answers, shares: _mean(answers.brier, shares),
    "ece": _ece,
    "classwise_ece": lambda answers, shares: _mean(answers.classwise, shares),
    "geometric_mean": _geometric_mean,
}


def _from_scores(kept: Kept, cell: Cell, column: Column, edges: Edges) -> CellMeasure | None:
    scores = kept.moved(Way.of(cell, column))
    if scores is None or kept.counts is None:
        return None
    return _of_value(SCORE_MEASURES[column.measure](scores), column, kept.counts, edges)


def _of_trials(kept: Kept, cell: Cell, column: Column) -> CellMeasure | None:
    """Of a drawn problem, whose numbers are one a trial."""
    trials = (kept.numbers or {}).get(f"{cell.head}|{cell.variant}", {})
    measure = f"{column.measure} {column.group}".strip()
    if measure not in trials:
        return None
    values = np.asarray(trials[measure], dtype=np.float64)
    weight, one_class = np.array([1 / len(values)]), np.zeros(len(values), dtype=np.int64)
    return _single(float(values.mean()), values, weight, one_class, "trials")


def _from_numbers(kept: Kept, cell: Cell, column: Column, edges: Edges) -> CellMeasure | None:
    value, counts = (kept.numbers or {}).get(column.measure), kept.counts
    return None if value is None or counts is None else _of_value(value, column, counts, edges)


def _of_value(value: object, column: Column, counts: Indices, edges: Edges) -> CellMeasure | None:
    """Of one number, or of one for each class or point: the mean of the group if one is asked."""
    numbers, about = np.asarray(value, dtype=np.float64), MEASURES[column.measure]
    if not about.is_number:
        return CellMeasure((0,), numbers[None], counts=counts)
    if about.per == "group":  # its classes do not vary by it
        numbers = np.asarray(dict(zip(GROUPS, numbers, strict=True)).get(column.group, np.nan))
    if numbers.ndim == 0:
        return None if np.isnan(numbers) else CellMeasure((0,), numbers[None])
    seen = group_mask(counts, column.group, edges) & ~np.isnan(numbers)
    if not seen.any():
        return None
    # Of the classes that count and of the others, which say whose mean it is.
    weight, labels = np.array([1 / seen.sum(), 0.0]), (~seen).astype(np.int64)
    terms = np.where(seen, numbers, 0.0)
    return _single(float(numbers[seen].mean()), terms, weight, labels, "classes")
