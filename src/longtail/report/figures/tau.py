"""Error and accuracy against τ, exact at every τ drawn (LA fig. 3, NCM fig. 5)."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from longtail.core import Prior
from longtail.core.arrays import Array, ArrayLike
from longtail.metrics.recall import group_means
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.groups import Groups, masks_of
from longtail.report.figures.tail import floats

_POINTS, _GROUP_POINTS = 241, 121


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
    """Error against τ, with the best τ marked (LA fig. 3).

    Args:
        curves: Of `posthoc.tau_curve` or `posthoc.weight_norm_curve`, or several under their names.
        low: Where the axis begins.
        high: Where it ends.

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

    Args:
        curve: Of `posthoc.tau_curve`.
        counts: Training samples of each class, for many, medium and few.
        groups: A boolean mask over the classes for each name, instead of those three.
        low: Where the axis begins.
        high: Where it ends.

    >>> from longtail.posthoc import tau_curve
    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
    >>> curve = tau_curve(logits, labels=[0, 0, 0, 1, 1], prior=[900, 10])
    >>> "few starts at 0 and ends at 100" in tau_groups_chart(curve, [900, 10])
    True
    """
    masks = masks_of(groups, counts)
    places = _places(low, high, _GROUP_POINTS)
    whole = "all" if _is_uniform(curve) else "all, under the target"
    drawn: dict[str, list[float]] = {whole: [100 * curve.at(tau) for tau in places]}
    for tau in places:
        for name, mean in group_means(floats(curve.recalls(tau)), masks).items():
            drawn.setdefault(name, []).append(np.nan if mean is None else 100 * mean)
    return line_chart(
        [Line(name, places, values) for name, values in drawn.items()],
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
