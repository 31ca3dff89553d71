r"""Curves of what is measured: over τ, over confidence, and how one number a sample is distributed.

Margins γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x) are positive where a sample is classified right. The
paper draws one label of the head, torso and tail; here a panel is a group of classes, which may be
a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from longtail.flows import figure_curves
from longtail.flows.figure_curves import Floats, Values, by_name, density
from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.frame import Guide
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.classes import GROUPS
from longtail.report.names import how_many

if TYPE_CHECKING:
    from longtail.core.arrays import ArrayLike
    from longtail.metrics import Reliability
    from longtail.posthoc import TauCurve

Groups: TypeAlias = "Mapping[str, ArrayLike]"
_POINTS, _GROUP_POINTS = 241, 121
_LARGEST, _SMALLEST = 12.0, 0.4  # areas of dots, 1 being usual
_HEIGHT, _ROOM = 110.0, 36.0
_MARGIN = "margin: logit of the true class over the highest other"


def tau_error_chart(
    curves: TauCurve | Mapping[str, TauCurve], low: float = 0.0, high: float = 2.0
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
    taus, lines = figure_curves.taus_between(low, high, _POINTS), []
    for style, (name, curve) in enumerate(named.items()):
        lines.append(Line(name, taus, figure_curves.error_at(curve, taus), style=style))
        best, least = curve.best_tau, 100 * (1 - curve.best_accuracy)
        if low <= best <= high:
            legend = f"best τ {best:.3g}: {least:.1f} %"
            lines.append(Line(legend, [best], [least], labels=[name], mark="dots", style=style))
    balanced = all(figure_curves.is_uniform(curve.target) for curve in named.values())
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
    """Accuracy of all classes and of each group against τ, post hoc: what the tail costs.

    For the τ of a loss, which takes a training for each, see `trained_tau_chart`. Groups are a
    boolean mask over the classes for each name; by default many, medium and few.

    >>> from longtail.posthoc import tau_curve
    >>> logits = [[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]]
    >>> curve = tau_curve(logits, labels=[0, 0, 0, 1, 1], prior=[900, 10])
    >>> "few starts at 0 and ends at 100" in tau_groups_chart(curve, [900, 10])
    True
    """
    taus = figure_curves.taus_between(low, high, _GROUP_POINTS)
    whole = "all" if figure_curves.is_uniform(curve.target) else "all, under the target"
    masks, recalls = figure_curves.masks_of(groups, counts), (curve.recalls(tau) for tau in taus)
    drawn = {whole: [curve.at(tau) for tau in taus]}
    drawn |= figure_curves.group_accuracies(recalls, masks)
    return line_chart(
        [Line(name, taus, [100 * share for share in line]) for name, line in drawn.items()],
        title="Accuracy of the groups against τ",
        x_title="τ",
        y_title="accuracy (%)",
        x_range=(low, high),
    )


def trained_tau_chart(
    recalls: Mapping[float, ArrayLike], counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """Accuracy of all classes and of each group against the τ of the loss (NCM fig. 5).

    Recalls (`metrics.recalls`) are those of a training with each τ. The paper varies τ of eq. 9,
    the logit-adjusted loss of learned NCM, which predicts the nearest centroid as before. Groups
    are those of `tau_groups_chart`.

    >>> chart = trained_tau_chart({0.0: [0.9, 0.1], 0.125: [0.8, 0.4]}, counts=[900, 10])
    >>> "few starts at 10 and ends at 40" in chart
    True
    """
    taus, masks = sorted(recalls), figure_curves.masks_of(groups, counts)
    masks = figure_curves.with_all(masks, counts)
    drawn = figure_curves.group_accuracies((recalls[tau] for tau in taus), masks)
    return line_chart(
        [
            Line(name, taus, [100 * share for share in line], mark="both")
            for name, line in drawn.items()
        ],
        title="Accuracy of the groups against the τ of the loss",
        x_title="τ of the loss",
        y_title="accuracy (%)",
    )


def group_curves_chart(log: Sequence[Mapping[str, float | None]], title: str = "") -> Chart:
    """Validation accuracy of many-, medium- and few-shot classes after each epoch (NCM fig. 4).

    The log has `epoch`, `val_many`, `val_medium`, `val_few` of each epoch; None where unknown.

    >>> rows = [{"epoch": 1.0, "val_many": 0.5}, {"epoch": 2.0, "val_many": 0.75}]
    >>> "many-shot starts at 50 and ends at 75" in group_curves_chart(rows)
    True
    """
    lines = []
    for name in GROUPS:
        points = [(row.get("epoch"), row.get(f"val_{name}")) for row in log]
        drawn = [(at, 100 * value) for at, value in points if at is not None and value is not None]
        if drawn:
            epochs, accuracies = zip(*drawn, strict=True)
            lines.append(Line(f"{name}-shot", epochs, accuracies))
    if not lines:
        raise ValueError(
            "the log has no accuracy of many, medium and few: train with a validation part, "
            "data.validation_share=0.1"
        )
    return line_chart(
        lines,
        title=title or "Accuracy of groups of classes over the epochs",
        x_title="epoch",
        y_title="validation accuracy (%)",
    )


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
            _reliability_line(f"{name}, ECE {100 * errors[name]:.1f} %", curve, style)
            for style, (name, curve) in enumerate(named.items())
        ],
        title="Reliability: accuracy by confidence",
        x_title="confidence (%); the area of a dot is its share of the samples",
        y_title="accuracy (%)",
        guides=[Guide("calibrated", [0, 100], [0, 100])],
        x_range=(-2.0, 104.0),
        height=300,
    )


def _reliability_line(name: str, curve: Reliability, style: int) -> Line:
    bins, largest = len(curve.share), max(curve.share)
    filled = [at for at, share in enumerate(curve.share) if share > 0]
    labels = [
        f"confidence {100 * at / bins:g} to {100 * (at + 1) / bins:g} %, "
        f"{100 * curve.share[at]:.2g} % of the samples"
        for at in filled
    ]
    return Line(
        name,
        [100 * curve.confidence[at] for at in filled],
        [100 * curve.accuracy[at] for at in filled],
        labels=labels,
        mark="both",
        style=style,
        sizes=[max(_LARGEST * curve.share[at] / largest, _SMALLEST) for at in filled],
    )


def margins_chart(
    margins: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The density of margins (`metrics.margins`) in each group of classes (ELM fig. 3).

    Groups are a boolean mask over the classes for each panel; by default many, medium and few.

    >>> chart = margins_chart([2.0, -1.0, -0.1], labels=[0, 1, 0], counts=[900, 10])
    >>> "many: 1 class, 2 samples" in chart, "few: 1 class, 1 sample" in chart
    (True, True)
    """
    titles = "Margins by group", _MARGIN, "density"
    return _group_panels(by_name(margins), labels, counts, groups, density, titles)


def margin_cdf_chart(
    margins: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The share of samples whose margin is at most each value, in each group (ELM fig. 6).

    At a margin of zero stands the group's error. A curve further to the right is better. Arguments
    are those of `margins_chart`.

    >>> chart = margin_cdf_chart([2.0, -1.0, -0.1], labels=[0, 1, 0], counts=[900, 10])
    >>> chart.count('class="line"')
    2
    """
    titles = "Cumulative margins by group", _MARGIN, "samples at most there (%)"
    curve = figure_curves.cumulative_share
    return _group_panels(by_name(margins), labels, counts, groups, curve, titles, points=161)


def largest_distances_chart(
    distances: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The density of the largest distances within classes, by group (ELM fig. 4).

    The further left, the more compact classes are. A sample's distance is that to the farthest of
    its class (`metrics.representations.largest_intra_class_distances`); the other arguments are
    those of `margins_chart`.

    >>> chart = largest_distances_chart([0.5, 0.5, 0.1, 0.1], [0, 0, 1, 1], counts=[900, 10])
    >>> chart.count('class="line"')
    2
    """
    title = "Largest distance within the class, by group"
    titles = title, "distance to the farthest of the class, over the largest norm", "density"
    named = by_name(distances, "features")
    return _group_panels(named, labels, counts, groups, density, titles)


def _group_panels(
    named: Mapping[str, Floats],
    labels: ArrayLike,
    counts: ArrayLike,
    groups: Groups | None,
    curve: Callable[[Floats, Floats], Floats],
    titles: tuple[str, str, str],
    points: int = 40,
) -> Chart:
    """The curve of each run's values in each group of classes, all over the same places."""
    (title, x_title, y_title), masks = titles, figure_curves.masks_of(groups, counts)
    places = figure_curves.places_for(named.values(), points)
    parts = figure_curves.by_group(named, labels, masks)
    charts, headings = [], []
    for part in parts:
        charts.append(
            line_chart(
                [Line(name, places, curve(own, places)) for name, own in part.values.items()],
                title=f"{title}: {part.name}",
                x_title=x_title if part is parts[-1] else "",
                y_title=y_title,
                x_range=(float(places[0]), float(places[-1])),
                y_room=_ROOM,
                height=_HEIGHT,
            )
        )
        classes = how_many(part.num_classes, "class", "classes")
        headings.append(f"{part.name}: {classes}, {how_many(part.num_samples, 'sample')}")
    return panels(charts, title=title, headings=headings)
