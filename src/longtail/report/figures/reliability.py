"""Reliability: how often a model is right that says so with a given confidence (LADE fig. 4, 6)."""

import numpy as np

from longtail.core import Prior, PriorLike
from longtail.metrics import ece, reliability
from longtail.metrics.samples import weights_to
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.runs import LabelledRun, Runs, floats, labelled

_LARGEST, _SMALLEST = 12.0, 0.4  # areas of dots, 1 being usual
_FEWEST, _MOST = 5, 20  # bins; LADE has 20
_IN_A_BIN = 100  # samples on average: the accuracy of such a bin is known to ten points


def bins_for(samples: int) -> int:
    """How many bins so many samples fill.

    >>> bins_for(500), bins_for(1_000), bins_for(10_000)
    (5, 10, 20)
    """
    return min(max(samples // _IN_A_BIN, _FEWEST), _MOST)


def reliability_chart(
    runs: Runs, target: PriorLike | None = None, bins: int | None = None
) -> Chart:
    """Accuracy against confidence in bins; a calibrated model lies on the diagonal.

    The area of a dot is the share of samples in its bin. The legend has the ECE as `metrics.ece`
    has it, with 20 bins unless `bins` says otherwise.

    Args:
        runs: Labelled scores, or several under their names, such as before and after.
        target: The prior that labels follow where the model is used: samples count as their
            classes do under it. The scores stay as they are; `scores.under(target)` moves them.
        bins: How many bins of equal width are drawn; by default by the number of samples.

    >>> from longtail import Scores
    >>> scores = Scores([[2.0, 0.0], [1.0, 0.0], [0.1, 0.0]], labels=[0, 1, 0])
    >>> reliability_chart(scores).count('class="mark"')
    3
    """
    known = labelled(runs)
    lines = [_line(run, target, bins, style) for style, run in enumerate(known)]
    return line_chart(
        lines,
        title="Reliability: accuracy by confidence",
        x_title="confidence (%); the area of a dot is its share of the samples",
        y_title="accuracy (%)",
        guides=[Guide("calibrated", [0, 100], [0, 100])],
        x_range=(-2.0, 104.0),
        height=300,
    )


def _line(run: LabelledRun, target: PriorLike | None, asked: int | None, style: int) -> Line:
    bins = bins_for(len(run.labels)) if asked is None else asked
    weights = None if target is None else weights_to(Prior.of(target), run.labels)
    found = reliability(run.scores.logits, run.labels, weights, bins)
    error = ece(run.scores.logits, run.labels, weights) if asked is None else found.ece
    share, confidence, accuracy = (floats(part) for part in found)
    labels = [
        f"confidence {100 * at / bins:g} to {100 * (at + 1) / bins:g} %, "
        f"{100 * share[at]:.2g} % of the samples"
        for at in range(bins)
    ]
    filled = share > 0
    return Line(
        f"{run.name}, ECE {100 * error:.1f} %",
        100 * confidence[filled],
        100 * accuracy[filled],
        labels=[label for label, is_filled in zip(labels, filled, strict=True) if is_filled],
        mark="both",
        style=style,
        sizes=np.maximum(_LARGEST * share[filled] / share.max(), _SMALLEST),
    )
