"""Reliability: how often a model is right that says so with a given confidence (LADE fig. 4, 6)."""

from collections.abc import Mapping

import numpy as np

from longtail.metrics import Reliability
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.tail import floats

_LARGEST, _SMALLEST = 12.0, 0.4  # areas of dots, 1 being usual


def reliability_chart(
    curves: Reliability | Mapping[str, Reliability], ece: Mapping[str, float] | None = None
) -> Chart:
    """Accuracy against confidence in bins; a calibrated model lies on the diagonal.

    The area of a dot is the share of samples in its bin.

    Args:
        curves: As `metrics.reliability` has them, of one run or of several under their names.
        ece: The calibration errors in the legend, by name, where they are of other bins than those
            that are drawn.

    >>> from longtail.metrics import reliability
    >>> curve = reliability([[2.0, 0.0], [1.0, 0.0], [0.1, 0.0]], [0, 1, 0], bins=5)
    >>> reliability_chart(curve).count('class="mark"')
    3
    """
    named = {"model": curves} if isinstance(curves, Reliability) else dict(curves)
    if not named:
        raise ValueError("a figure needs values, got none; give a Reliability or a dict of them")
    errors = {name: curve.ece for name, curve in named.items()} | dict(ece or {})
    return line_chart(
        [_line(name, curve, errors[name], at) for at, (name, curve) in enumerate(named.items())],
        title="Reliability: accuracy by confidence",
        x_title="confidence (%); the area of a dot is its share of the samples",
        y_title="accuracy (%)",
        guides=[Guide("calibrated", [0, 100], [0, 100])],
        x_range=(-2.0, 104.0),
        height=300,
    )


def _line(name: str, curve: Reliability, ece: float, style: int) -> Line:
    share, confidence, accuracy = (floats(part) for part in curve)
    bins, filled = len(share), np.flatnonzero(share > 0)
    labels = [
        f"confidence {100 * at / bins:g} to {100 * (at + 1) / bins:g} %, "
        f"{100 * share[at]:.2g} % of the samples"
        for at in filled
    ]
    return Line(
        f"{name}, ECE {100 * ece:.1f} %",
        100 * confidence[filled],
        100 * accuracy[filled],
        labels=labels,
        mark="both",
        style=style,
        sizes=np.maximum(_LARGEST * share[filled] / share.max(), _SMALLEST),
    )
