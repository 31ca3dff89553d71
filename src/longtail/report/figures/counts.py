"""Class counts along the tail: the label profile (EO fig. 1a)."""

from collections.abc import Mapping, Sequence

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, Mark, line_chart
from longtail.report.figures.over_classes import AXIS, tail_of


def counts_chart(
    counts: ArrayLike | Mapping[str, ArrayLike],
    *,
    classes: Sequence[str] | None = None,
    many: int = 100,
    few: int = 20,
) -> Chart:
    """How many samples each class has, from the most frequent to the rarest.

    Args:
        counts: Samples of each class, or several such under their names: each is ordered by itself.
        classes: The names of the classes.
        many: Above this a class has many samples, by `shot_groups`.
        few: Below this a class has few samples.

    >>> counts_chart([500, 60, 7]).count('class="mark"')
    3
    """
    named = counts if isinstance(counts, Mapping) else {"samples": counts}
    lines, longest, largest = [], 1, 1.0
    for name, given in named.items():
        tail = tail_of(given, classes)
        shown = np.where(tail.counts > 0, tail.counts, np.nan)  # zero has no logarithm
        mark: Mark = "both" if len(shown) <= 30 else "line"
        lines.append(Line(name, tail.places, shown, labels=tail.names, mark=mark))
        longest, largest = max(longest, len(shown)), max(largest, tail.counts.max(initial=1.0))
    edges = [
        Guide(f"{word} {level}", [1, longest], [level, level])
        for word, level in (("many: above", many), ("few: below", few))
        if level <= largest
    ]
    return line_chart(
        lines,
        title="Samples of each class",
        x_title=AXIS,
        y_title="samples, by their logarithm",
        guides=edges,
        log_y=True,
    )
