"""Error and accuracy against τ, exact at every τ drawn (LA fig. 3, NCM fig. 5)."""

from collections.abc import Mapping

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.core.tensors import count_tensor
from longtail.metrics.recall import group_means
from longtail.posthoc import TauCurve
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.runs import Groups, floats, masks_of

_POINTS, _GROUP_POINTS = 241, 121


def tau_error_chart(
    curves: TauCurve | Mapping[str, TauCurve], low: float = 0.0, high: float = 2.0
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
    named = {"logit adjustment": curves} if isinstance(curves, TauCurve) else dict(curves)
    places = _places(low, high, _POINTS)
    lines = []
    for style, (name, curve) in enumerate(named.items()):
        steps = np.searchsorted(floats(curve.taus), places, side="right")
        error = 100 * (1 - floats(curve.accuracy)[steps])
        lines.append(Line(name, places, error, style=style))
        best, least = curve.best_tau, 100 * (1 - curve.best_accuracy)
        if low <= best <= high:
            said = f"best τ {best:.3g}: {least:.1f} %"
            lines.append(Line(said, [best], [least], labels=[name], mark="dots", style=style))
    balanced = all(_is_uniform(curve) for curve in named.values())
    return line_chart(
        lines,
        title="Error against τ",
        x_title="τ",
        y_title="balanced error (%)" if balanced else "error under the target (%)",
        x_range=(low, high),
    )


def tau_groups_chart(
    curve: TauCurve,
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
    known = count_tensor(counts, curve.target.num_classes).cpu()
    masks = masks_of(groups, known)
    places = _places(low, high, _GROUP_POINTS)
    whole = "all" if _is_uniform(curve) else "all, under the target"
    drawn: dict[str, list[float]] = {whole: [100 * curve.at(tau) for tau in places]}
    for tau in places:
        found = group_means(floats(curve.recalls(tau)), masks)
        for name, accuracy in found.items():
            drawn.setdefault(name, []).append(np.nan if accuracy is None else 100 * accuracy)
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


def _is_uniform(curve: TauCurve) -> bool:
    return bool(np.ptp(curve.target.probs) < 1e-12)
