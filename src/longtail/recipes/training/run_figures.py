"""Figures out of run folders: norms of the head's rows (LA fig. 1), group curves (NCM fig. 4)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from longtail.core.arrays import Array
from longtail.data.files.errors import reading
from longtail.metrics.representations import weight_norms
from longtail.recipes.training.model_file import load_model
from longtail.report import Chart
from longtail.report.figures import group_curves_chart as group_curves_chart
from longtail.report.figures import weight_norms_chart as weight_norms_chart
from longtail.report.figures.classes import GROUPS as GROUPS


def read_log(folder: Path) -> list[dict[str, float | None]]:
    """The rows of a run's log.csv, as `group_curves_chart` takes them; empty cells are None."""
    place = folder / "log.csv"
    if not place.is_file():
        raise FileNotFoundError(f"there is no {place}; give a run folder of `longtail train`")
    with reading(place, "the log of a run"), place.open(newline="", encoding="utf-8") as file:
        return [
            {key: float(value) if value else None for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def weight_norms_of_runs(runs: Mapping[str, Sequence[Path]]) -> Chart:
    """LA figure 1 from one run folder for each optimiser, or several."""
    return weight_norms_chart({name: [_stored(run) for run in some] for name, some in runs.items()})


def _stored(folder: Path) -> tuple[Array, Tensor]:
    found = load_model(folder)
    return weight_norms(found.model.head.rows.detach()), torch.tensor(found.counts)
