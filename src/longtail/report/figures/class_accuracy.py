"""Accuracy of every class along the tail (EO fig. 4)."""

from longtail.core.arrays import ArrayLike
from longtail.metrics import geometric_mean, recalls
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import WIDTH
from longtail.report.charts.lines import Line
from longtail.report.figures.over_classes import class_lines, over_classes, tail_of
from longtail.report.figures.runs import Runs, counts_for, floats, labelled, names_of


def class_accuracy_chart(
    runs: Runs, counts: ArrayLike | None = None, width: float = WIDTH
) -> Chart:
    """The recall of each class, from the most frequent to the rarest, above the training counts.

    The legend has the geometric mean of the recalls, a recall of zero counting as 0.001.

    Args:
        runs: Labelled scores, or several under their names.
        counts: Training samples of each class; by default those the scores know.
        width: Of the figure.

    >>> from longtail import Scores
    >>> logits = [[2.0, 0.0], [1.0, 0.0], [0.1, 0.2]]
    >>> chart = class_accuracy_chart(Scores(logits, labels=[0, 0, 1], counts=[90, 10]))
    >>> "geometric mean 100.0 %" in chart
    True
    """
    known = labelled(runs)
    tail = tail_of(counts_for(known, counts), names_of(known))
    lines: list[Line] = []
    for style, run in enumerate(known):
        found = recalls(run.scores)
        name = f"{run.name}, geometric mean {100 * geometric_mean(run.scores):.1f} %"
        lines += class_lines(name, 100 * floats(found), tail, style)
    return over_classes(lines, tail, title="Accuracy by class", y_title="accuracy (%)", width=width)
