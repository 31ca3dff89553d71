"""Cumulative false positives: which classes the mistakes fall on (EO fig. 5)."""

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.metrics import false_positives
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.over_classes import AXIS, tail_of
from longtail.report.figures.runs import Runs, counts_for, floats, labelled


def false_positives_chart(
    runs: Runs, counts: ArrayLike | None = None, share: bool = False
) -> Chart:
    """Mistakes taken for one of the k most frequent classes, over k.

    Straight where no class is favoured; concave, above the dotted line, where mistakes fall on
    frequent classes; convex where they fall on rare ones. The last point is the number of all
    mistakes.

    Args:
        runs: Labelled scores, or several under their names.
        counts: Training samples of each class; by default those the scores know.
        share: Whether to draw percent of each run's own mistakes, so that shapes compare.

    >>> from longtail import Scores
    >>> logits = [[2.0, 0.0], [1.0, 0.0], [0.1, 0.2]]
    >>> chart = false_positives_chart(Scores(logits, labels=[0, 1, 0], counts=[90, 10]))
    >>> "model starts at 0 and ends at 2" in chart
    True
    """
    known = labelled(runs)
    tail = tail_of(counts_for(known, counts))
    size = len(tail.order)
    at = np.unique(np.linspace(0, size, min(size, 300) + 1).astype(int))
    lines, guides = [], []
    for style, run in enumerate(known):
        wrong = floats(false_positives(run.scores.predict(), run.labels, size))[tail.order]
        sums = np.concatenate([[0.0], np.cumsum(wrong)])
        if share:
            sums = 100 * sums / max(sums[-1], 1)
        lines.append(Line(run.name, at, sums[at], style=style))
        # In percent one line is that of every run; else each has its own, in its colour.
        if len(known) == 1 or share:
            guides = [Guide("no class favoured", [0, size], [0, float(sums[-1])])]
        else:
            name = f"no class favoured, {run.name}"
            guides.append(Guide(name, [0, size], [0, float(sums[-1])], style))
    return line_chart(
        lines,
        title="Cumulative false positives",
        x_title=AXIS,
        y_title="mistaken for one of the classes so far" + (" (% of mistakes)" if share else ""),
        guides=guides,
    )
