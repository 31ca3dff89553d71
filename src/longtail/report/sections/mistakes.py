"""Which classes rare ones are taken for, before and after."""

from __future__ import annotations

import torch
from torch import Tensor

from longtail.core.arrays import as_tensor
from longtail.report.charts.heat import heat_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section
from longtail.report.sections.groups import groups_of
from longtail.report.table import Column, Table

_MOST_PAIRS = 10


def mistakes_section(judged: Judged) -> Section:
    """Groups taken for groups, and the single mistakes that rare classes suffer most."""
    groups = groups_of(judged)
    sides = [(judged.names[0], judged.before)]
    if judged.is_changed:
        sides.append((judged.names[1], judged.after))
    predicted = [as_tensor(scores.predict()).cpu() for _, scores in sides]
    columns = ["right", *(f"taken for {name}" for name in groups)]
    figures = [
        Figure(
            heat_chart(
                list(groups),
                columns,
                (100 * confusion(judged, found, groups)).tolist(),
                title=f"Groups taken for groups, {name}",
                row_title="true class",
                value_title="share of the samples (%)",
                low=0,
                high=100,
            ),
            f"{name[:1].upper()}{name[1:]}: what becomes of the samples of each group, every class "
            "counting the same.",
        )
        for (name, _), found in zip(sides, predicted, strict=True)
    ]
    return Section(
        heading="Which classes are taken for which",
        table=_pairs(judged, [name for name, _ in sides], predicted),
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


def _pairs(judged: Judged, names: list[str], predicted: list[Tensor]) -> Table | None:
    classes = judged.num_classes
    rare = torch.zeros(classes, dtype=torch.bool)
    rare[judged.order[classes // 2 :]] = True
    wrong = (predicted[0] != judged.labels) & rare[judged.labels]
    cells, times = torch.unique(
        judged.labels[wrong] * classes + predicted[0][wrong], return_counts=True
    )
    if not len(cells):
        return None
    # The most samples first; of equally many those that are the larger share of their class.
    share = times / judged.label_counts[cells // classes]
    worst = torch.argsort(times + share * 0.5, descending=True, stable=True)[:_MOST_PAIRS]
    rows: list[list[str | float | None]] = []
    for cell in cells[worst].tolist():
        true, taken = divmod(cell, classes)
        own = judged.labels == true
        shares = [100 * float((found[own] == taken).double().mean()) for found in predicted]
        rows.append([_named(judged, true), _named(judged, taken), int(own.sum()), *shares])
    return Table(
        [
            Column("class of the rarer half"),
            Column("taken for"),
            Column("samples", digits=0),
            *(Column(name, "%", digits=1) for name in names),
        ],
        rows,
        caption=f"The {len(rows)} mistakes that cost the rarer half of the classes most samples "
        f"{names[0]}, as shares of the class.",
    )


def _named(judged: Judged, k: int) -> str:
    if judged.counts is None:
        return judged.classes[k]
    trained = int(judged.counts[k])
    return f"{judged.classes[k]} ({trained:,} in training)"
