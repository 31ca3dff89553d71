"""One number a class against how many samples it has."""

from collections.abc import Sequence

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.metrics.representations import frequency_correlation
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.charts.scale import fixed
from longtail.report.figures.over_classes import tail_of
from longtail.report.figures.runs import floats


def against_counts(
    values: ArrayLike,
    counts: ArrayLike,
    classes: Sequence[str] | None,
    *,
    title: str,
    y_title: str,
) -> Chart:
    """A dot a class over its count; the legend has Spearman's rank correlation."""
    tail = tail_of(counts, classes)
    shown = np.where(tail.counts > 0, floats(values)[tail.order], np.nan)
    rank = frequency_correlation(values, counts)
    said = "each dot a class" + (
        "" if np.isnan(rank) else f", rank correlation {fixed(round(rank, 2) + 0.0, 2)}"
    )
    return line_chart(
        [Line(said, np.maximum(tail.counts, 1), shown, labels=tail.names, mark="dots")],
        title=title,
        x_title="training samples of the class",
        y_title=y_title,
        log_x=True,
    )
