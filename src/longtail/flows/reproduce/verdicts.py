r"""What a verdict on a claim means; there is no other place that decides.

A claim is judged by 95 % intervals of what it says, in every column of the table that has numbers
of ours for all its rows, here k of them. Pairs are of the same test samples, and of equal seeds
where there are several. With [a, b] the interval in a column, and [a', b'] the wider one at 5 %/k,

    better, by at least m   the gain, counted so that more is better
        holds               a > 0 and a ≥ m in every column
        does not hold       b' < 0, or b' < m, in at least one
    close, within m         the difference
        holds               −m ≤ a and b ≤ m in every column
        does not hold       a' > m or b' < −m in at least one
    trend                   ρ, Spearman's rank correlation of one number a class with its training
                            count, k of them in all rows and columns; of a few rows or columns
                            instead their contrast with their order, Σ (rank − mean rank) · value;
                            of a curve, whose points are not independent, its last less its first
                            over seeds
        a sign, + or −      holds if the interval lies on that side of zero in all of them, does not
                            if it lies on the other side in at least one
        no trend            of ρ alone; holds if it may be zero and is weak, |ρ| ≤ 0.5 at both
                            ends, in all; does not if zero is outside the interval in at least one
        + or none           holds if a ≥ −0.5 wherever a ≤ 0, does not if b' < 0; − or none likewise
    cannot tell             neither, or a number without an interval

All columns have to hold at 5 % each, which needs no correction; that one of k does not is a finding
of k looks, hence 5 %/k. A claim of which no column has numbers has no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from longtail.core.arrays import Floats, as_numpy
from longtail.flows.reproduce.experiment import (
    Better,
    Claim,
    Close,
    Experiment,
    Trend,
    claim_rows,
)
from longtail.flows.reproduce.measures import MEASURES
from longtail.flows.reproduce.measuring import CellMeasure, summed
from longtail.stats import Interval, correlation_interval, rank_correlation

Verdict: TypeAlias = Literal["holds", "does not hold", "cannot tell"]
Table: TypeAlias = Mapping[tuple[str, str], CellMeasure]  # by row and column
_LEVEL = 0.05
_WEAK = 0.5  # the largest rank correlation that is still none
_FEWEST = 3  # rows or columns that make a trend


@dataclass(frozen=True, kw_only=True)
class Evidence(Interval):
    """What a claim says of one column, or of a row in one: a gain, a difference, a correlation."""

    value: float
    rows: tuple[str, ...]  # whose numbers it is made of
    columns: tuple[str, ...]
    over: str  # what the interval is over
    seeds: int
    published: float | None  # the same from the paper's numbers


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim and what came of it."""

    claim: Claim
    verdict: Verdict | None  # None where there is nothing to judge it by
    evidence: tuple[Evidence, ...] = ()
    columns_left: tuple[str, ...] = ()  # columns of the claim without numbers of ours
    rows_left: tuple[str, ...] = ()  # rows of the claim without any

    @property
    def seeds(self) -> int:
        """The fewest that a column has."""
        return min((each.seeds for each in self.evidence), default=0)


class _Finding(NamedTuple):
    """What one column, or one row of it, says: its interval at any level."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    at: Callable[[float], Interval]
    over: str
    seeds: int
    published: float | None = None

    def evidence(self) -> Evidence:
        """Of the usual level."""
        made = self.at(_LEVEL)
        return Evidence(
            value=math.nan if made.value is None else made.value,
            low=made.low,
            high=made.high,
            rows=self.rows,
            columns=self.columns,
            over=self.over,
            seeds=self.seeds,
            published=self.published,
        )


def judge_claim(experiment: Experiment, claim: Claim, table: Table) -> ClaimVerdict:
    """The verdict on a claim by the numbers of a table."""
    columns = claim.columns or tuple(each.name for each in experiment.columns)
    findings = list(_findings(experiment, claim, columns, table))
    rows = [row for row in claim_rows(claim) if not any((row, name) in table for name in columns)]
    seen = {name for each in findings for name in each.columns}
    left = tuple(name for name in columns if name not in seen)
    if not findings:
        return ClaimVerdict(claim, None, (), left, tuple(rows))
    return ClaimVerdict(
        claim,
        _verdict(claim, findings),
        tuple(each.evidence() for each in findings),
        left,
        tuple(rows),
    )


def _verdict(claim: Claim, findings: Sequence[_Finding]) -> Verdict:
    usual = [each.at(_LEVEL) for each in findings]
    wide = [each.at(_LEVEL / len(findings)) for each in findings]
    if any(each.low is None or each.high is None for each in usual):
        return "cannot tell"
    ends = [(float(each.low or 0.0), float(each.high or 0.0)) for each in usual]
    wider = [(float(each.low or 0.0), float(each.high or 0.0)) for each in wide]
    holds, fails = _RULES[type(claim)](claim)
    if all(holds(low, high) for low, high in ends):
        return "holds"
    return "does not hold" if any(fails(low, high) for low, high in wider) else "cannot tell"


_Rule: TypeAlias = Callable[[float, float], bool]


def _of_better(claim: Better) -> tuple[_Rule, _Rule]:
    return (
        lambda low, high: low > 0 and low >= claim.by,
        lambda low, high: high < max(claim.by, 0.0),
    )


def _of_close(claim: Close) -> tuple[_Rule, _Rule]:
    below = -claim.within
    above = math.inf if claim.at_least else claim.within
    return (
        lambda low, high: below <= low and high <= above,
        lambda low, high: low > above or high < below,
    )


def _of_trend(claim: Trend) -> tuple[_Rule, _Rule]:
    signs = set(claim.signs)
    if 0 not in signs:
        up = 1 in signs
        return (
            (lambda low, high: low > 0 if up else high < 0),
            (lambda low, high: high < 0 if up else low > 0),
        )
    # The side on which a trend would speak against the claim, each of them for no trend at all.
    above, below = 1 not in signs, -1 not in signs

    def holds(low: float, high: float) -> bool:
        far = (above and high > _WEAK) or (below and low < -_WEAK)
        return not far and not fails(low, high)

    def fails(low: float, high: float) -> bool:
        return (above and low > 0) or (below and high < 0)

    return holds, fails


_RULES: Mapping[type, Callable[..., tuple[_Rule, _Rule]]] = {
    Better: _of_better,
    Close: _of_close,
    Trend: _of_trend,
}


def _findings(
    experiment: Experiment, claim: Claim, columns: Sequence[str], table: Table
) -> Iterator[_Finding]:
    if isinstance(claim, Trend):
        yield from _trends(experiment, claim, columns, table)
        return
    one = claim.better if isinstance(claim, Better) else claim.row
    other = claim.worse if isinstance(claim, Better) else claim.to
    for name in columns:
        first = table.get((one, name))
        second = table.get((other, name)) if isinstance(other, str) else None
        if first is None or (second is None and isinstance(other, str)):
            continue
        sign = _sign(experiment, name) if isinstance(claim, Better) else 1
        terms = [(float(sign), first)] + ([] if second is None else [(-float(sign), second)])
        made = summed(terms)
        if made is not None:
            apart = 0.0 if isinstance(other, str) else -float(other)
            paper = _published(experiment, [(sign, one, name), (-sign, other, name)])
            rows = (one, other) if isinstance(other, str) else (one,)
            yield _Finding(
                rows, (name,), partial(made.interval, apart=apart), made.over, made.seeds, paper
            )


def _sign(experiment: Experiment, column: str) -> int:
    return MEASURES[experiment.column(column).measure].better


def _published(
    experiment: Experiment, terms: Sequence[tuple[float, str | float, str]]
) -> float | None:
    """The same sum of what the paper prints; None where it prints too little."""
    total = 0.0
    for factor, row, column in terms:
        value = experiment.published(row, column) if isinstance(row, str) else row
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        total += factor * value
    return total


def _trends(
    experiment: Experiment, claim: Trend, columns: Sequence[str], table: Table
) -> Iterator[_Finding]:
    if claim.against in ("count", "point"):
        for row in claim.rows:
            for name in columns:
                finding = _along(claim, row, name, table)
                if finding is not None:
                    yield finding
        return
    along_rows = claim.against == "rows"
    lines = (
        [[(row, name) for row in claim.rows] for name in columns]
        if along_rows
        else [[(row, name) for name in columns] for row in claim.rows]
    )
    for line in lines:
        there = [
            cell
            for cell in line
            if cell in table and (not claim.minus or (claim.minus, cell[1]) in table)
        ]
        if len(there) < _FEWEST:
            continue
        ranks = np.arange(len(there)) - (len(there) - 1) / 2
        terms = [(rank, cell) for rank, cell in zip(ranks.tolist(), there, strict=True)]
        if claim.minus:
            terms += [(-rank, (claim.minus, name)) for rank, (_, name) in terms]
        made = summed([(factor, table[cell]) for factor, cell in terms])
        if made is not None:
            paper = _published(experiment, [(factor, *cell) for factor, cell in terms])
            rows, names = (tuple(dict.fromkeys(each)) for each in zip(*there, strict=True))
            yield _Finding(rows, names, made.interval, made.over, made.seeds, paper)


def _along(claim: Trend, row: str, column: str, table: Table) -> _Finding | None:
    """The rank correlation of one number a class with its count; of a curve its last less first."""
    own, other = table.get((row, column)), table.get((claim.minus or row, column))
    if own is None or own.values.ndim < 2 or other is None:
        return None
    seeds = [seed for seed in own.seeds if seed in other.seeds]
    if not seeds:
        return None
    values = own.of_seeds(seeds).values
    if claim.minus:
        values = values - other.of_seeds(seeds).values
    if claim.against == "point":
        made = summed([(1.0, CellMeasure(tuple(seeds), values[:, -1] - values[:, 0]))])
        return (
            None
            if made is None
            else _Finding((row,), (column,), made.interval, made.over, made.seeds)
        )
    means: Floats = values.mean(axis=0)
    seen = ~np.isnan(means)
    rho, pairs = rank_correlation(means[seen], as_numpy(own.counts)[seen]), int(seen.sum())
    if np.isnan(rho):
        return None
    interval = partial(correlation_interval, rho, pairs)
    return _Finding((row,), (column,), interval, "classes", len(seeds))
