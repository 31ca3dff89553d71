"""Norms of the last layer's rows along the tail (LA fig. 1)."""

from collections.abc import Mapping, Sequence

import numpy as np

from longtail.core.arrays import Array, ArrayLike
from longtail.metrics.representations import weight_norms
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.over_classes import AXIS, tail_of
from longtail.report.figures.runs import Floats, floats


def weight_norms_chart(runs: Mapping[str, Sequence[tuple[Array, ArrayLike]]]) -> Chart:
    """Norms ‖w_y‖ of the head's rows by class, from the most frequent one on.

    Under SGD with momentum they follow the class frequencies, under Adam they need not, which is
    why dividing by them is no remedy that holds. Runs of one name are averaged, with a band of one
    standard deviation.

    Args:
        runs: For each line its name, and weight and training counts of one run or of several.

    >>> runs = {"SGD": [([[3.0, 4.0], [0.0, 1.0]], [90, 10])]}
    >>> "SGD starts at 5 and ends at 1" in weight_norms_chart(runs)
    True
    """
    lines = []
    for name, several in runs.items():
        norms = np.stack([_along(weight, counts) for weight, counts in several])
        middle, spread = norms.mean(axis=0), norms.std(axis=0)
        low, high = (middle - spread, middle + spread) if len(norms) > 1 else (None, None)
        lines.append(Line(name, range(1, len(middle) + 1), middle, low, high))
    return line_chart(
        lines,
        title="Norms of the weights of each class",
        x_title=AXIS,
        y_title="norm of its weights",
    )


def _along(weight: Array, counts: ArrayLike) -> Floats:
    norms: Floats = floats(weight_norms(weight))[tail_of(counts).order]
    return norms
