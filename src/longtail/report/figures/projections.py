"""Learned local projections of each class as a heat map (NCM fig. 3)."""

from collections.abc import Sequence

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.report.charts.chart import Chart
from longtail.report.charts.heat import heat_chart
from longtail.report.figures.over_classes import tail_of
from longtail.report.figures.runs import floats

_MOST_ROWS, _MOST_COLUMNS = 20, 16


def projections_chart(
    projections: ArrayLike, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """How much each eigen-direction of a class counts for its distance, σ(w) of NCM eq. 4.

    Directions run from the smallest eigenvalue to the largest, classes from the most frequent to
    the rarest. Where there are more than fit, neighbours are averaged. In the paper the tail throws
    its directions of large variance away.

    Args:
        projections: Shape (C, D), as `MetricNCM(..., metric="eigenbasis").projections`.
        counts: Training samples of each class.
        classes: The names of the classes.

    >>> projections_chart([[0.9, 0.8], [0.7, 0.1]], counts=[90, 10]).count('class="mark"')
    4
    """
    tail = tail_of(counts, classes)
    values = floats(projections)
    if values.ndim != 2 or len(values) != len(tail.order):
        raise ValueError(
            f"projections must have shape ({len(tail.order)}, D), one row for each count, "
            f"got {values.shape}"
        )
    rows = np.array_split(np.arange(len(values)), min(len(values), _MOST_ROWS))
    columns = np.array_split(np.arange(values.shape[1]), min(values.shape[1], _MOST_COLUMNS))
    ordered = values[tail.order]
    single = len(rows) == len(values)
    return heat_chart(
        tail.names if single else [f"classes {_span(places)}" for places in rows],
        [_span(places) for places in columns],
        [[ordered[np.ix_(row, column)].mean() for column in columns] for row in rows],
        title="Local projections: how much each direction counts",
        row_title="by frequency",
        column_title="eigen-directions, smallest eigenvalue first",
        value_title="share",
    )


def _span(places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    first, last = places[0] + 1, places[-1] + 1
    return f"{first}" if first == last else f"{first}–{last}"
