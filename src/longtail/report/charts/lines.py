"""Lines over x: curves with bands around them, or a dot per class along a long tail."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from longtail.report.charts.chart import Chart, as_numbers, check_lengths, check_pair, drawing
from longtail.report.charts.frame import (
    HEIGHT,
    WIDTH,
    Guide,
    Reference,
    dotted,
    guide_key,
    legend,
    line_key,
    no_data,
    plot_area,
    reference_key,
    reference_line,
    x_axis,
    y_axis,
)
from longtail.report.charts.scale import (
    Scale,
    covering_log_ticks,
    covering_ticks,
    readable,
    span_of,
    tick_labels,
)
from longtail.report.charts.svg import (
    Attributes,
    Svg,
    color,
    coordinate,
    dash,
    element,
    many_marks,
    marker,
    pale_fill,
)

_TOOLTIPS = 500  # with more points than this a tooltip for each would be most of the file
_RADIUS = 2.6
_CURVE = 60  # and a line of more points than this is a curve, whose points have no names


Mark: TypeAlias = Literal["line", "dots", "both"]


@dataclass(frozen=True)
class Line:
    """A named series over x; NaN leaves a gap.

    Attributes:
        name: What the legend says.
        x: Where the points lie, in the order they are joined.
        y: How high they lie.
        low: Lower edge of a band around the line; needs `high`.
        high: Upper edge of the band.
        labels: What each point is called in its tooltip, such as a class name; default its x.
        mark: Whether points are joined, shown, or both.
        style: Number of the colour, dash and marker; by default the place in the list.
        sizes: How large each point's area is, 1 being usual.
        faint: Whether it stands behind another series that sums it up: pale, and not in the legend.
    """

    name: str
    x: Collection[float]
    y: Collection[float]
    low: Collection[float] | None = None
    high: Collection[float] | None = None
    labels: Sequence[str] | None = None
    mark: Mark = "line"
    style: int | None = None
    sizes: Collection[float] | None = None
    faint: bool = False


class _Trace(NamedTuple):
    """A checked series with the number of its colour, dash and marker."""

    line: Line
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    sizes: tuple[float, ...]

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:
        return self.y, self.low, self.high

    @property
    def joined(self) -> bool:
        return self.line.mark != "dots"

    @property
    def dotted(self) -> bool:
        return self.line.mark != "line"


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_title: str = "",
    y_title: str = "",
    reference: Reference | None = None,
    guides: Sequence[Guide] = (),
    log_x: bool = False,
    log_y: bool = False,
    x_range: tuple[float, float] | None = None,
    y_room: float = 0.0,
    width: float = WIDTH,
    height: float = HEIGHT,
) -> Chart:
    """Series over x, with bands where they have them and one level to compare with.

    Up to 500 points have tooltips, those of a plain line without labels up to 60.

    Args:
        lines: The series.
        title: What a screen reader says first; not drawn.
        x_title: Name and unit of x.
        y_title: Name and unit of y.
        reference: A level drawn across and named in the legend.
        guides: Dotted lines to compare with, each named in the legend.
        log_x: Whether x is drawn by its logarithm.
        log_y: Whether y is drawn by its logarithm.
        x_range: The ends of the x axis, for charts that are read side by side.
        y_room: The least room for the numbers of the y axis, so that charts above each other align.
        width: Of the figure.
        height: Of the plot; legend and titles come on top of it.

    >>> curve = Line("post-hoc", x=[0, 1, 2], y=[17.1, 8.0, 9.5])
    >>> svg = line_chart([curve], title="Error by tau", reference=Reference(7.87, "Bayes 7.87 %"))
    >>> svg.count('class="mark"')
    3
    """
    traces = [_trace(line, number, log_x, log_y) for number, line in enumerate(lines)]
    levels = [value for trace in traces for part in trace.levels for value in part]
    level = [] if reference is None else [reference.value]
    beside = [float(value) for guide in guides for value in guide.y]
    ticks = (covering_log_ticks if log_y else covering_ticks)(
        *span_of(levels + level + beside, log=log_y)
    )
    shown = [trace for trace in traces if not trace.line.faint]
    pale = {trace.style for trace in traces if trace.line.faint and trace.dotted}
    keys = [
        line_key(t.line.name, t.style, t.joined, t.dotted or t.style in pale, t.style in pale)
        for t in shown
    ]
    keys += [*map(guide_key, guides), *reference_key(reference)]
    drawn, above = legend(keys, width)
    plot = plot_area(width, height, above, tick_labels(ticks), y_title, y_room)
    places = [v for trace in traces for v in trace.x] + [float(v) for g in guides for v in g.x]
    span = x_range or span_of(places, pad=0.02, log=log_x)
    whole = all(not math.isfinite(place) or place == round(place) for place in places)
    x = Scale(*span, plot.left, plot.right, log_x, whole)
    y = Scale(ticks[0], ticks[-1], plot.bottom, plot.top, log_y)
    axis, total = x_axis(plot, x, x_title, width)
    drawn += [axis, y_axis(plot, y, ticks, y_title)]
    drawn += [_band(trace, x, y) for trace in traces if trace.low]
    drawn += [_guide_line(guide, x, y) for guide in guides]
    if reference is not None:
        at = y(reference.value)
        drawn.append(reference_line(plot.left, at, plot.right, at, reference.label))
    light = sum(len(trace.x) for trace in traces) > _TOOLTIPS
    # Faint series first, so that what sums them up lies on top.
    ordered = sorted(traces, key=lambda trace: not trace.line.faint)
    drawn += [_marks(trace, x, y, not light and not _is_curve(trace)) for trace in ordered]
    if not any(math.isfinite(value) for value in levels):
        drawn.append(no_data(plot))
    return drawing((width, total), title, _description(traces, x_title, reference, guides), drawn)


def _trace(line: Line, number: int, log_x: bool, log_y: bool) -> _Trace:
    what = f"line {line.name!r}"
    check_pair(what, line.low, line.high)
    x, y, low, high, sizes = line.x, line.y, line.low, line.high, line.sizes
    check_lengths(what, x=x, y=y, low=low, high=high, labels=line.labels, sizes=sizes)
    named = {"x": x, "y": y, "low": low, "high": high, "sizes": sizes}
    numbers = (as_numbers(values, f"{name} of {what}") for name, values in named.items())
    trace = _Trace(line, number if line.style is None else line.style, *numbers)
    if log_x:
        _check_positive(what, "x", trace.x)
    if log_y:
        _check_positive(what, "y", [value for part in trace.levels for value in part])
    return trace


def _is_curve(trace: _Trace) -> bool:
    return not trace.dotted and trace.line.labels is None and len(trace.x) > _CURVE


def _check_positive(what: str, axis: str, values: Sequence[float]) -> None:
    if any(value <= 0 for value in values):
        raise ValueError(
            f"{what} must have {axis} above zero on a logarithmic axis; got {min(values):g}; "
            f"leave such points out or use log_{axis}=False"
        )


def _description(
    traces: Sequence[_Trace], x_title: str, reference: Reference | None, guides: Sequence[Guide]
) -> str:
    named = [trace for trace in traces if not trace.line.faint]
    sentences = [f"{len(named)} series over {x_title or 'x'}."]
    for trace in named:
        finite = [value for value in trace.y if math.isfinite(value)]
        if finite:
            ends = f"starts at {readable(finite[0])} and ends at {readable(finite[-1])}"
            inside = f"between {readable(min(finite))} and {readable(max(finite))}"
            sentences.append(f"{trace.line.name} {ends}, {inside}.")
    if reference is not None:
        sentences.append(f"Reference: {reference.label}.")
    sentences += [f"Dotted: {guide.label}." for guide in guides]
    return " ".join(sentences)


def _band(trace: _Trace, x: Scale, y: Scale) -> Svg:
    """The area around the line."""
    outline = ""
    for run in _runs(trace.x, trace.low, trace.high):
        there = [(x(at), y(high)) for at, _, high in run]
        back = [(x(at), y(low)) for at, low, _ in reversed(run)]
        outline += _path(there + back) + "Z"
    paint = color(trace.style)
    # The faint stroke keeps a band of a single point visible.
    fill: Attributes = {"fill": paint, "fill_opacity": 0.14}
    look: Attributes = fill | {"stroke": paint, "stroke_opacity": 0.25}
    return element("path", class_="band", d=outline, **look) if outline else Svg()


def _marks(trace: _Trace, x: Scale, y: Scale, tooltips: bool) -> Svg:
    """The line and the points, each with a tooltip or all as one path."""
    runs = list(_runs(trace.x, trace.y))
    parts = []
    if trace.joined and runs:
        outline = "".join(_path([(x(a), y(b)) for a, b in run]) for run in runs)
        stroke: Attributes = {"stroke_width": 1.8, "stroke_dasharray": dash(trace.style)}
        parts.append(element("path", class_="line", d=outline, fill="none", **stroke))
    parts += _points(trace, runs, x, y) if tooltips else _light_points(trace, runs, x, y)
    paint = color(trace.style)
    # The more points, the paler: what sums them up must stay readable on top of them.
    opacity = (0.45 if tooltips else 0.25) if trace.line.faint else None
    fill = pale_fill(trace.style) if trace.line.faint else paint
    return element("g", *parts, fill=fill, stroke=paint, opacity=opacity)


def _guide_line(guide: Guide, x: Scale, y: Scale) -> Svg:
    """The guide, with a gap where it has no value."""
    runs = _runs(tuple(map(float, guide.x)), tuple(map(float, guide.y)))
    outline = "".join(_path([(x(a), y(b)) for a, b in run]) for run in runs)
    return dotted(outline, guide.label, paint=guide.paint)


def _points(
    trace: _Trace, runs: Sequence[Sequence[tuple[float, ...]]], x: Scale, y: Scale
) -> list[Svg]:
    alone = {run[0] for run in runs if len(run) == 1}
    names = trace.line.labels or [readable(value) for value in trace.x]
    sizes = trace.sizes or (1.0,) * len(trace.x)
    drawn = []
    for at, level, name, size in zip(trace.x, trace.y, names, sizes, strict=True):
        if math.isfinite(at) and math.isfinite(level):
            tooltip = f"{trace.line.name}, {name}: {readable(level)}"
            # Points of a plain line are there for the pointer only, unless no line reaches them.
            hidden = not trace.dotted and (at, level) not in alone
            radius = _RADIUS * math.sqrt(size)
            drawn.append(marker(trace.style, x(at), y(level), radius, tooltip, hidden=hidden))
    return drawn


def _light_points(
    trace: _Trace, runs: Sequence[Sequence[tuple[float, ...]]], x: Scale, y: Scale
) -> list[Svg]:
    shown = [(x(a), y(b)) for run in runs if trace.dotted or len(run) == 1 for a, b in run]
    return [many_marks(trace.style, shown, _RADIUS)] if shown else []


def _runs(*columns: Sequence[float]) -> Iterator[list[tuple[float, ...]]]:
    """Stretches of rows without a gap."""
    run: list[tuple[float, ...]] = []
    for row in zip(*columns, strict=True):
        if all(map(math.isfinite, row)):
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
