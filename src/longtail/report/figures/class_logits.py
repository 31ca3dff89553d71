"""Logits of positives and negatives of each class along the tail, beside log C (LADE fig. 3)."""

import math

from longtail.core import Scores
from longtail.core.arrays import ArrayLike
from longtail.metrics import class_logits
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Reference
from longtail.report.charts.lines import Line
from longtail.report.figures.over_classes import over_classes, tail_of
from longtail.report.figures.runs import counts_for, floats, labelled, names_of


def class_logits_chart(scores: Scores, counts: ArrayLike | None = None) -> Chart:
    """Mean logit of each class on its own samples and on the others, with one standard deviation.

    For logits that carry the uniform prior and classes that can be told apart, positives tend to
    log C (LADE eq. 21): the dotted line.

    Args:
        scores: Labelled logits.
        counts: Training samples of each class; by default those the scores know.

    >>> logits = [[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]]
    >>> chart = class_logits_chart(Scores(logits, labels=[0, 1, 0], counts=[90, 10]))
    >>> "positives starts at 4 and ends at 2" in chart
    True
    """
    known = labelled(scores)
    tail = tail_of(counts_for(known, counts), names_of(known))
    found = class_logits(scores.logits, known[0].labels)
    lines = []
    for name, at in (("positives", 0), ("negatives", 2)):
        mean, spread = (floats(part)[tail.order] for part in found[at : at + 2])
        lines.append(Line(name, tail.places, mean, mean - spread, mean + spread, labels=tail.names))
    level = math.log(scores.num_classes)
    return over_classes(
        lines,
        tail,
        title="Logits of positives and negatives by class",
        y_title="logit of the class, ± one standard deviation",
        reference=Reference(level, f"log C = {level:.2f}"),
    )
