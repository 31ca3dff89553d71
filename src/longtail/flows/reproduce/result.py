"""A table of a paper with ours beside it, and a verdict on each of its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from longtail.data import exponential_counts
from longtail.flows.reproduce.experiment import (
    Cell,
    Experiment,
    Inspect,
    Run,
    Value,
    claim_rows,
)
from longtail.flows.reproduce.kept import Kept
from longtail.flows.reproduce.measures import EDGES, Edges, group_mask
from longtail.flows.reproduce.measuring import CellMeasure, measured, summed
from longtail.flows.reproduce.pictures import Picture, picture
from longtail.flows.reproduce.plan import Settled, settled
from longtail.flows.reproduce.verdicts import ClaimVerdict, judge_claim
from longtail.flows.results import Result
from longtail.flows.train.reading import plain
from longtail.flows.train.recipe import Cifar10, Cifar20, CifarSet, Recipe
from longtail.stats import Interval

if TYPE_CHECKING:
    from longtail.flows.two_gaussians import TwoGaussians
    from longtail.flows.two_moons import TwoMoons

KeptOf: TypeAlias = Callable[[Run, int], Kept | None]
RecipeOf: TypeAlias = Callable[[Inspect], Recipe]
_STATISTICS = ("classes", "samples", "imbalance_ratio")  # of a training set
MOST_SEEDS = 10  # that are looked for beyond those an experiment names


@dataclass(frozen=True, kw_only=True)
class Number(Interval):
    """A number of ours, with its 95 % interval."""

    value: float
    over: str  # what the interval is over
    seeds: int
    chosen_on_test: bool  # whether its τ is chosen on test samples


@dataclass(frozen=True)
class Unjudged:
    """Why there is no verdict: a reason, runs that are not finished, or data that are not here."""

    reason: str = ""
    runs: int | None = None  # that would make it; none is left if what they have is not measured
    hours: float | None = None  # of one seed and one thread
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Reproduced(Result):
    """An experiment in one setting, with what there is of it."""

    experiment: Experiment
    settled: Settled
    measures: Mapping[tuple[str, str], CellMeasure]  # by row and column
    settings: Mapping[tuple[str, str], Value]  # settings and statistics, which are no results
    runs: Mapping[tuple[str, str], tuple[Cell, Mapping[int, Kept]]]  # by row and data
    command: str

    kind: ClassVar[str] = "reproduce"

    @cached_property
    def numbers(self) -> dict[tuple[str, str], Number]:
        """Of every cell that is one number."""
        made = {}
        for cell_at, each in self.measures.items():
            total = summed([(1.0, each)]) if each.values.ndim == 1 else None
            if total is not None and math.isfinite(total.value):
                cell, _ = self.runs[cell_at[0], self.experiment.column(cell_at[1]).data]
                ends = total.interval()
                made[cell_at] = Number(
                    value=total.value,
                    low=ends.low,
                    high=ends.high,
                    over=total.over,
                    seeds=total.seeds,
                    chosen_on_test=cell.chosen_on_test,
                )
        return made

    @cached_property
    def outcomes(self) -> tuple[ClaimVerdict, ...]:
        """The claims, in the paper's order."""
        return tuple(
            judge_claim(self.experiment, claim, self.measures) for claim in self.experiment.claims
        )

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """What is drawn of each measure on each set of data, where a row has it."""
        edges, made = EDGES[self.experiment.paper], dict[tuple[str, str], Picture | None]()
        for column in self.experiment.columns:
            of_rows = {row: runs for (row, data), runs in self.runs.items() if data == column.data}
            for name in (column.measure, *self.experiment.draws):
                if (name, column.data) not in made:  # columns of groups are one picture
                    asked = msgspec.structs.replace(column, measure=name)
                    made[name, column.data] = picture(asked, of_rows, edges)
        return tuple(each for each in made.values() if each is not None)

    @property
    def gaussians(self) -> TwoGaussians | None:
        """What a picture of two Gaussians shows, if they were drawn."""
        return next((each.gaussians for each in self._kept if each.gaussians is not None), None)

    @property
    def moons(self) -> TwoMoons | None:
        """What a picture of two moons shows, if they were drawn."""
        return next((each.moons for each in self._kept if each.moons is not None), None)

    @property
    def _kept(self) -> list[Kept]:
        return [each for _, seeds in self.runs.values() for each in seeds.values()]

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds that a number is of."""
        return tuple(sorted({seed for each in self.measures.values() for seed in each.seeds}))

    @cached_property
    def why_not(self) -> dict[str, str]:
        """Rows that cannot be made, and why."""
        whole = {each.row: each.why for each in self.experiment.missing}
        names = self.experiment.rows or ("*",)
        return {row: whole.get(row, whole.get("*", "")) for row in names if {row, "*"} & set(whole)}

    def runs_of(self, outcome: ClaimVerdict) -> tuple[Run, ...]:
        """The runs whose numbers a claim is judged by, maybe on other data than the paper's."""
        cells = (
            (row, self.experiment.column(column).data)
            for part in outcome.evidence
            for row in part.rows
            for column in part.columns
        )
        return tuple(dict.fromkeys(self.runs[cell_at][0].run for cell_at in cells))

    def unjudged(self, outcome: ClaimVerdict) -> Unjudged:
        """Why a claim has no verdict."""
        claim = outcome.claim
        rows = claim_rows(claim)
        for row in (row for row in rows if row in self.why_not):
            return Unjudged(reason=self.why_not[row])
        names = claim.columns or tuple(each.name for each in self.experiment.columns)
        for data in dict.fromkeys(self.experiment.column(name).data for name in names):
            cells = [self.runs.get((row, data)) for row in rows]
            if all(cell is not None for cell in cells):
                absent = {cell.run for cell, kept in filter(None, cells) if not kept}
                hours = [run.hours for run in absent]
                total = None if None in hours else sum(each or 0.0 for each in hours)
                return Unjudged(runs=len(absent), hours=total)
        return Unjudged(needs=self.experiment.needs)

    def as_json(self) -> dict[str, Any]:
        """Everything that is a number or a word."""
        experiment = self.experiment
        return {
            "name": experiment.name,
            "paper": experiment.paper,
            "item": experiment.item,
            "about": experiment.about,
            "setting": self.settled.setting,
            "note": self.settled.note,
            "seeds": list(self.seeds),
            "cells": [
                {
                    "row": row,
                    "column": column.name,
                    "published": experiment.published(row, column.name),
                    "ours": _plain(self.numbers.get((row, column.name)))
                    or self.settings.get((row, column.name)),
                }
                for row in experiment.rows
                for column in experiment.columns
            ],
            "claims": [
                {
                    "claim": each.claim.text,
                    "doubt": each.claim.doubt,
                    "rule": msgspec.to_builtins(each.claim),
                    "runs": [msgspec.to_builtins(run) for run in self.runs_of(each)],
                    "verdict": each.verdict,
                    "evidence": [asdict(part) for part in each.evidence],
                    "columns_left": list(each.columns_left),
                    "rows_left": list(each.rows_left),
                }
                for each in self.outcomes
            ],
            "missing": self.why_not,
            "corrections": [msgspec.to_builtins(each) for each in experiment.corrections],
        }


def _plain(number: Number | None) -> dict[str, Any] | None:
    return None if number is None else asdict(number)


def reproduced(
    experiment: Experiment,
    kept_of: KeptOf,
    recipe_of: RecipeOf,
    *,
    quick: bool,
    seeds: tuple[int, ...] | None = None,
    command: str = "longtail.reproduce",
) -> Reproduced:
    """The table of an experiment from what is kept of its runs.

    Args:
        experiment: What to table.
        kept_of: What is kept of a run of a seed; None if nothing is.
        recipe_of: The recipe whose settings a table lists.
        quick: The setting for a CPU.
        seeds: By default as many as there are, up to `MOST_SEEDS`.
        command: What the page says has made it.
    """
    chosen, edges = settled(experiment, quick), EDGES[experiment.paper]
    drawn = seeds or tuple(range(max(MOST_SEEDS, len(chosen.seeds))))
    cells = {(cell.row, cell.data): cell for cell in chosen.cells}
    numbers: dict[tuple[str, str], CellMeasure] = {}
    settings: dict[tuple[str, str], Value] = {}
    read: dict[Run, dict[int, Kept]] = {}
    for row in experiment.rows:
        for column in experiment.columns:
            cell = cells.get((row, column.data))
            if cell is None or column.measure == "property":
                continue
            if isinstance(cell.run, Inspect):
                recipe = recipe_of(cell.run)
                value = setting_of(recipe, column.key, column.group, edges)
                if value is not None:
                    settings[row, column.name] = value
                continue
            if cell.run not in read:
                read[cell.run] = _of_seeds(cell, kept_of, drawn)
            made = measured(read[cell.run], cell, column, edges)
            if made is not None:
                numbers[row, column.name] = made
    runs = {at: (cell, read[cell.run]) for at, cell in cells.items() if cell.run in read}
    return Reproduced(experiment, chosen, numbers, settings, runs, command)


def _of_seeds(cell: Cell, kept_of: KeptOf, seeds: tuple[int, ...]) -> dict[int, Kept]:
    kept = {seed: kept_of(cell.run, seed) for seed in seeds}
    return {seed: each for seed, each in kept.items() if each is not None}


def setting_of(recipe: Recipe, key: str, group: str, edges: Edges) -> Value:
    """A setting under its key; classes, samples and ratio of a set whose counts follow from it."""
    if key in _STATISTICS:
        return _statistic(recipe, key, group, edges)
    inside: object = plain(recipe)
    for name in key.split("."):
        inside = inside.get(name) if isinstance(inside, Mapping) else None
    if isinstance(inside, Mapping):  # a part: its name
        inside = inside.get("name")
    return inside if isinstance(inside, int | float | str) else None


def _statistic(recipe: Recipe, key: str, group: str, edges: Edges) -> Value:
    """Known without the images of CIFAR alone, whose classes are equally large before the cut."""
    data = recipe.data
    if not isinstance(data, CifarSet) or data.profile != "exp" or data.imbalance_ratio is None:
        return None
    largest, classes = 500, 100
    if isinstance(data, Cifar10 | Cifar20):
        largest, classes = (5000, 10) if isinstance(data, Cifar10) else (2500, 20)
    counts = np.asarray(exponential_counts(largest, classes, data.imbalance_ratio))
    counts = counts[group_mask(counts, group, edges)]
    if key == "imbalance_ratio":
        return data.imbalance_ratio
    return len(counts) if key == "classes" else int(counts.sum())
