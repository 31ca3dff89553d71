"""What the figures of an experiment are drawn of: measures of each row, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Floats, Indices
from longtail.flows.reproduce.experiment import Cell, Column
from longtail.flows.reproduce.kept import Answers, Kept
from longtail.flows.reproduce.measures import Edges, group_mask
from longtail.flows.reproduce.ways import RELIABILITY, Way
from longtail.flows.score_measures import DRAWN_OF, SCORE_MEASURES, Value

Made = Mapping[str, tuple[Cell, Mapping[int, Kept]]]  # the cell and runs of each row


@dataclass(frozen=True, eq=False)
class Picture:
    """What a column's measure is drawn of."""

    column: str
    measure: str
    rows: Mapping[str, Sequence[Mapping[str, Value]]]  # of each seed
    counts: Indices  # training samples of each class
    groups: Mapping[str, npt.NDArray[np.bool_]]  # which classes each has


def picture(column: Column, made: Made, edges: Edges) -> Picture | None:
    """The values that rows have for a column's measure; None if no row has any."""
    names = (column.measure, *DRAWN_OF.get(column.measure, ()))
    rows, counts = {}, None
    for row, (cell, runs) in made.items():
        seeds = [_values(each, Way.of(cell, column), names) for each in runs.values()]
        seeds = [values for values in seeds if column.measure in values]
        if seeds:
            rows[row] = seeds
            counts = next(iter(runs.values())).counts if counts is None else counts
    if counts is None:
        return None
    masks = {name: group_mask(counts, name, edges) for name in ("many", "medium", "few")}
    groups = {name: mask for name, mask in masks.items() if mask.any()}
    return Picture(column.name, column.measure, rows, counts, groups)


def _values(kept: Kept, way: Way, names: Sequence[str]) -> dict[str, Value]:
    numbers, scores = kept.numbers or {}, kept.moved(way)
    made: dict[str, Value] = {}
    for name in names:
        if name in SCORE_MEASURES and scores is not None:
            made[name] = SCORE_MEASURES[name](scores)
        elif name == RELIABILITY and (bins := _reliability(kept.answered(way))) is not None:
            made[name] = bins
        elif numbers.get(name) is not None:
            made[name] = numbers[name]
    return made


def _reliability(answers: Answers | None) -> Floats | None:
    """Of each bin of confidence: the share of samples, mean confidence, accuracy (LADE fig. 4)."""
    if answers is None or answers.confidence is None:
        return None
    return np.stack(answers.sums.reliability)
