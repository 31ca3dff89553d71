"""Which classes rare ones are taken for, before and after."""

from __future__ import annotations

import torch
from torch import Tensor

from longtail.core.tensors import as_tensor
from longtail.report.charts.heat import heat_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section
from longtail.report.sections.groups import groups_of
from longtail.report.table import Column, Table

_MOST_PAIRS = 10


def mistakes_section(judged: Judged) -> Section:
    """Groups taken for groups, and the single mistakes that rare classes suffer most."""
    groups = groups_of(judged)
    predicted = {name: as_tensor(scores.predict()).cpu() for name, scores in judged.sides.items()}
    # What is right stands apart, so a column of a group holds mistakes only.
    columns = ["right", *(f"wrong: {name.removesuffix('-shot')}" for name in groups)]
    figures = [
        Figure(
            heat_chart(
                list(groups),
                columns,
                (100 * confusion(judged, found, groups)).tolist(),
                title=f"Groups taken for groups, {name}",
                row_title="true class",
                column_title="taken for",
                value_title="share of the samples (%)",
                low=0,
                high=100,
            ),
            f"{name[:1].upper()}{name[1:]}: what becomes of the samples of each group, every class "
            "counting the same.",
        )
        for name, found in predicted.items()
    ]
    return Section(
        heading="Which classes are taken for which",
        table=_pairs(judged, predicted),
        figures=figures,
    )


def confusion(judged: Judged, predicted: Tensor, groups: dict[str, Tensor]) -> Tensor:
    """A row for each group of true classes: the share right, then that wrong in each group.

    A sample counts one over those of its class, so that classes count the same; NaN in the row of
    a group without samples.
    """
    weights = 1 / judged.label_counts.double()[judged.labels]
    right = predicted == judged.labels
    rows = []
    for mask in groups.values():
        own = mask[judged.labels]
        total = weights[own].sum()
        shares = [weights[own & right].sum()]
        shares += [weights[own & ~right & other[predicted]].sum() for other in groups.values()]
        rows.append(torch.stack(shares) / total)
    return torch.stack(rows)


def _pairs(judged: Judged, predicted: dict[str, Tensor]) -> Table | None:
    classes, before = judged.num_classes, predicted[judged.names[0]]
    rare = torch.zeros(classes, dtype=torch.bool)
    rare[judged.order[classes // 2 :]] = True
    wrong = (before != judged.labels) & rare[judged.labels]
    cells, times = torch.unique(judged.labels[wrong] * classes + before[wrong], return_counts=True)
    if not len(cells):
        return None
    # The most samples first; of equally many those that are the larger share of their class.
    share = times / judged.label_counts[cells // classes]
    worst = torch.argsort(times + share * 0.5, descending=True, stable=True)[:_MOST_PAIRS]
    rows: list[list[str | float | None]] = []
    for cell in cells[worst].tolist():
        true, taken = divmod(cell, classes)
        own = judged.labels == true
        shares = [
            100 * float((found[own] == taken).double().mean()) for found in predicted.values()
        ]
        rows.append([_named(judged, true), _named(judged, taken), int(own.sum()), *shares])
    return Table(
        [
            Column("class of the rarer half"),
            Column("taken for"),
            Column("samples", digits=0),
            *(Column(name, "%", digits=1) for name in predicted),
        ],
        rows,
        caption="What the rarer half of the classes loses most samples to "
        f"({judged.names[0]}), as shares of the class.",
    )


def _named(judged: Judged, k: int) -> str:
    if judged.counts is None:
        return judged.classes[k]
    trained = int(judged.counts[k])
    return f"{judged.classes[k]} ({trained:,} in training)"
