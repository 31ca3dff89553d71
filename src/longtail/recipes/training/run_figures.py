"""Figures that come out of run folders: norms of the head's rows, and curves of the groups.

- `weight_norms_chart`: LA figure 1. Norms ‖w_y‖ of the last layer, classes from the most frequent
  to the rarest, one line a run: SGD beside Adam. Runs of the same name are averaged, with a band of
  one standard deviation.
- `group_curves_chart`: NCM figure 4. Validation accuracy of many-, medium- and few-shot classes
  after each epoch.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from longtail.core.arrays import as_tensor
from longtail.metrics import weight_norms
from longtail.recipes.training.model_file import load_model
from longtail.report import Line, Svg, line_chart

GROUPS = ("many", "medium", "few")


def read_log(folder: Path) -> list[dict[str, float | None]]:
    """The rows of a run's log.csv; empty cells are None."""
    place = folder / "log.csv"
    if not place.is_file():
        raise FileNotFoundError(f"there is no {place}; give a run folder of `longtail train`")
    with place.open(newline="", encoding="utf-8") as file:
        return [
            {key: float(value) if value else None for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def group_curves_chart(log: Sequence[Mapping[str, float | None]], title: str = "") -> Svg:
    """Accuracy of the groups over the epochs; a ValueError if the log has no validation."""
    rows = [row for row in log if any(row.get(f"val_{name}") is not None for name in GROUPS)]
    if not rows:
        raise ValueError(
            "the log has no accuracy of many, medium and few: train with a validation part, "
            "data.held_out=0.1"
        )
    lines = []
    for name in GROUPS:
        points = [(row["epoch"], row.get(f"val_{name}")) for row in rows]
        known = {at: 100 * value for at, value in points if at is not None and value is not None}
        if known:
            lines.append(Line(f"{name}-shot", list(known), list(known.values())))
    return line_chart(
        lines,
        title=title or "Accuracy of groups of classes over the epochs",
        x_title="epoch",
        y_title="validation accuracy (%)",
    )


def weight_norms_chart(runs: Mapping[str, Sequence[tuple[Tensor, Tensor]]]) -> Svg:
    """Norms of the head's rows by class, from the most frequent one on.

    Args:
        runs: For each line its name, and weight and training counts of one run or of several.
    """
    lines = []
    for name, several in runs.items():
        norms = torch.stack([_by_frequency(weight, counts) for weight, counts in several])
        middle = norms.mean(dim=0)
        spread = norms.std(dim=0, correction=0) if len(norms) > 1 else None
        places = range(1, len(middle) + 1)
        lines.append(
            Line(
                name,
                places,
                middle.tolist(),
                None if spread is None else (middle - spread).tolist(),
                None if spread is None else (middle + spread).tolist(),
            )
        )
    return line_chart(
        lines,
        title="Norms of the weights of each class",
        x_title="class, from the most frequent to the rarest",
        y_title="norm of its weights",
    )


def weight_norms_of_runs(runs: Mapping[str, Sequence[Path]]) -> Svg:
    """The same from run folders: LA figure 1 from one folder for each optimiser, or several."""
    return weight_norms_chart({name: [_stored(run) for run in some] for name, some in runs.items()})


def _stored(folder: Path) -> tuple[Tensor, Tensor]:
    found = load_model(folder)
    return found.model.head.rows.detach(), torch.tensor(found.counts)


def _by_frequency(weight: Tensor, counts: Tensor) -> Tensor:
    return as_tensor(weight_norms(weight))[counts.argsort(descending=True, stable=True)]
