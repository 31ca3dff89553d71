"""Curves of what is measured: error and accuracy against τ, accuracy against confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from longtail.flows.figure_curves import floats, group_accuracies, masks_of
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, line_chart

if TYPE_CHECKING:
    from longtail.core import Prior
    from longtail.core.arrays import Array, ArrayLike
    from longtail.metrics import Reliability
    from longtail.report.figures.groups import Groups

_POINTS, _GROUP_POINTS = 241, 121
_LARGEST, _SMALLEST = 12.0, 0.4  # areas of dots, 1 being usual


class _Curve(Protocol):
    """A `posthoc.TauCurve`: accuracies between the τ at which they change."""

    @property
    def taus(self) -> Array: ...
    @property
    def accuracy(self) -> Array: ...
    @property
    def target(self) -> Prior: ...
    @property
    def best_tau(self) -> float: ...
    @property
    def best_accuracy(self) -> float: ...
    def at(self, tau: float) -> float: ...
    def recalls(self, tau: float) -> Array: ...


def tau_error_chart(
    curves: _Curve | Mapping[str, _Curve], low: float = 0.0, high: float = 2.0
) -> Chart:
    """Error against τ between low and high, with the best τ marked (LA fig. 3).

    Curves are those of `posthoc.tau_curve` or `posthoc.weight_norm_curve`.

    >>> from longtail.posthoc import tau_curve
    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
    >>> curve = tau_curve(logits, labels=[0, 0, 0, 1, 1], prior=[90, 10])
    >>> "best τ 0.387: 16.7 %" in tau_error_chart(curve)
    True
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"logit adjustment": curves}
    places = _places(low, high, _POINTS)
    lines = []
    for style, (name, curve) in enumerate(named.items()):
        steps = np.searchsorted(floats(curve.taus), places, side="right")
        error = 100 * (1 - floats(curve.accuracy)[steps])
        lines.append(Line(name, places, error, style=style))
        best, least = curve.best_tau, 100 * (1 - curve.best_accuracy)
        if low <= best <= high:
            told = f"best τ {best:.3g}: {least:.1f} %"
            lines.append(Line(told, [best], [least], labels=[name], mark="dots", style=style))
    balanced = all(_is_uniform(curve) for curve in named.values())
    return line_chart(
        lines,
        title="Error against τ",
        x_title="τ",
        y_title="balanced error (%)" if balanced else "error under the target (%)",
        x_range=(low, high),
    )


def tau_groups_chart(
    curve: _Curve,
    counts: ArrayLike,
    groups: Groups | None = None,
    low: float = 0.0,
    high: float = 2.0,
) -> Chart:
    """Accuracy of all classes and of each group against τ (NCM fig. 5): what the tail costs.

    Groups are a boolean mask over the classes for each name; by default many, medium and few.

    >>> from longtail.posthoc import tau_curve
    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
    >>> curve = tau_curve(logits, labels=[0, 0, 0, 1, 1], prior=[900, 10])
    >>> "few starts at 0 and ends at 100" in tau_groups_chart(curve, [900, 10])
    True
    """
    places = _places(low, high, _GROUP_POINTS)
    whole = "all" if _is_uniform(curve) else "all, under the target"
    recalls = (curve.recalls(tau) for tau in places)
    drawn = {whole: [curve.at(tau) for tau in places]}
    drawn |= group_accuracies(recalls, masks_of(groups, counts))
    return line_chart(
        [Line(name, places, [100 * share for share in line]) for name, line in drawn.items()],
        title="Accuracy of the groups against τ",
        x_title="τ",
        y_title="accuracy (%)",
        x_range=(low, high),
    )


def _places(low: float, high: float, number: int) -> list[float]:
    if not low < high:
        raise ValueError(f"the axis must begin below its end, got τ from {low} to {high}")
    return [float(tau) for tau in np.linspace(low, high, number)]


def _is_uniform(curve: _Curve) -> bool:
    return bool(np.ptp(floats(curve.target.probs)) < 1e-12)


def reliability_chart(
    curves: Reliability | Mapping[str, Reliability], ece: Mapping[str, float] | None = None
) -> Chart:
    """Accuracy against confidence in bins; a calibrated model lies on the diagonal.

    The area of a dot is the share of samples in its bin. Curves are those of `metrics.reliability`;
    `ece` has the calibration errors in the legend, where they are of other bins than those drawn.

    >>> from longtail.metrics import reliability
    >>> curve = reliability([[2.0, 0.0], [1.0, 0.0], [0.1, 0.0]], [0, 1, 0], bins=5)
    >>> reliability_chart(curve).count('class="mark"')
    3
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"model": curves}
    if not named:
        raise ValueError("a figure needs values, got none; give a Reliability or a dict of them")
    errors = {name: curve.ece for name, curve in named.items()} | dict(ece or {})
    return line_chart(
        [
            _reliability_line(name, curve, errors[name], at)
            for at, (name, curve) in enumerate(named.items())
        ],
        title="Reliability: accuracy by confidence",
        x_title="confidence (%); the area of a dot is its share of the samples",
        y_title="accuracy (%)",
        guides=[Guide("calibrated", [0, 100], [0, 100])],
        x_range=(-2.0, 104.0),
        height=300,
    )


def _reliability_line(name: str, curve: Reliability, ece: float, style: int) -> Line:
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
