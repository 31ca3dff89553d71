"""Lines over x: curves with bands around them, or a dot per class along a long tail."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from longtail.report.charts import frame, scale, svg
from longtail.report.charts.chart import Chart, as_columns, drawing
from longtail.report.charts.frame import Axis, Guide, Reference
from longtail.report.charts.scale import Scale
from longtail.report.charts.svg import Attributes, Svg

_TOOLTIPS = 500  # with more points than this a tooltip for each would be most of the file
_RADIUS = 2.6
_CURVE = 60  # and a line of more points than this is a curve, whose points have no names
Mark: TypeAlias = Literal["line", "dots", "both"]


@dataclass(frozen=True)
class Line:
    """A named series over x; NaN leaves a gap."""

    name: str
    x: Collection[float]  # in the order in which points are joined
    y: Collection[float]
    low: Collection[float] | None = None  # lower edge of a band around the line; needs high
    high: Collection[float] | None = None
    labels: Sequence[str] | None = None  # what points are called in tooltips; by default their x
    mark: Mark = "line"  # whether points are joined, shown, or both
    style: int | None = None  # of colour, dash and marker; by default the place in the list
    sizes: Collection[float] | None = None  # areas of the points, 1 being usual
    faint: bool = False  # behind a series that sums it up: pale, and not in the legend


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

    @property
    def is_curve(self) -> bool:
        return not self.dotted and self.line.labels is None and len(self.x) > _CURVE


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
    width: float = frame.WIDTH,
    height: float = frame.HEIGHT,
) -> Chart:
    """Series over x, with bands where they have them and one level to compare with.

    Up to 500 points have tooltips, those of a plain line without labels up to 60. The title is read
    aloud and not drawn; `x_range` and `y_room`, the least room for the numbers of the y axis, align
    charts that are read beside each other; height is that of the plot alone.

    >>> curve = Line("post-hoc", x=[0, 1, 2], y=[17.1, 8.0, 9.5])
    >>> svg = line_chart([curve], title="Error by tau", reference=Reference(7.87, "Bayes 7.87 %"))
    >>> svg.count('class="mark"')
    3
    """
    traces = [_trace(line, number, log_x, log_y) for number, line in enumerate(lines)]
    levels = [value for trace in traces for part in trace.levels for value in part]
    beside = [float(value) for guide in guides for value in guide.y]
    beside += [] if reference is None else [reference.value]
    covering = scale.covering_log_ticks if log_y else scale.covering_ticks
    ticks = covering(*scale.span_of(levels + beside, log=log_y))
    pale = {trace.style for trace in traces if trace.line.faint and trace.dotted}
    keys = [
        frame.line_key(t.line.name, t.style, t.joined, t.dotted or t.style in pale, t.style in pale)
        for t in traces
        if not t.line.faint
    ]
    keys += [guide.key for guide in guides] + ([] if reference is None else [reference.key])
    values = [v for trace in traces for v in trace.x] + [float(v) for g in guides for v in g.x]
    whole = all(not math.isfinite(value) or value == round(value) for value in values)
    span = x_range or scale.span_of(values, pad=0.02, log=log_x)
    across = Axis(*span, x_title, log=log_x, whole=whole)
    up = Axis(ticks[0], ticks[-1], y_title, ticks, log_y, room=y_room)
    drawn, plot, x, y, size = frame.frame(keys, across, up, width, height)
    drawn += [_band(trace, x, y) for trace in traces if trace.low]
    for guide in guides:
        outline = path(map(float, guide.x), map(float, guide.y), x, y)
        drawn.append(frame.dotted(outline, guide.label, paint=guide.paint))
    drawn += [] if reference is None else [reference.across(plot, y)]
    light = sum(len(trace.x) for trace in traces) > _TOOLTIPS
    # Faint series first, so that what sums them up lies on top.
    ordered = sorted(traces, key=lambda trace: not trace.line.faint)
    drawn += [_marks(trace, x, y, not light and not trace.is_curve) for trace in ordered]
    if not any(math.isfinite(value) for value in levels):
        drawn.append(frame.no_data(plot))
    return drawing(size, title, _description(traces, x_title, reference, guides), drawn)


def _trace(line: Line, number: int, log_x: bool, log_y: bool) -> _Trace:
    what, style = f"line {line.name!r}", number if line.style is None else line.style
    band = {"low": line.low, "high": line.high}
    beside = {"labels": line.labels}
    columns = as_columns(what, beside, x=line.x, y=line.y, **band, sizes=line.sizes)
    trace = _Trace(line, style, **columns)
    if log_x:
        _check_positive(what, "x", trace.x)
    if log_y:
        _check_positive(what, "y", [value for part in trace.levels for value in part])
    return trace


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
            ends = f"starts at {scale.readable(finite[0])} and ends at {scale.readable(finite[-1])}"
            inside = f"between {scale.readable(min(finite))} and {scale.readable(max(finite))}"
            sentences.append(f"{trace.line.name} {ends}, {inside}.")
    sentences += [] if reference is None else [f"Reference: {reference.label}."]
    sentences += [f"Dotted: {guide.label}." for guide in guides]
    return " ".join(sentences)


def _band(trace: _Trace, x: Scale, y: Scale) -> Svg:
    """The area around the line."""
    outline = ""
    for run in runs(trace.x, trace.low, trace.high):
        there = [(x(at), y(high)) for at, _, high in run]
        back = [(x(at), y(low)) for at, low, _ in reversed(run)]
        outline += _joined(there + back) + "Z"
    paint = svg.color(trace.style)
    # The faint stroke keeps a band of a single point visible.
    fill: Attributes = {"fill": paint, "fill_opacity": 0.14}
    edge: Attributes = {"stroke": paint, "stroke_opacity": 0.25}
    return svg.element("path", class_="band", d=outline, **fill, **edge) if outline else Svg()


def _marks(trace: _Trace, x: Scale, y: Scale, tooltips: bool) -> Svg:
    """The line and the points, each with a tooltip or all as one path."""
    parts = []
    outline = path(trace.x, trace.y, x, y)
    if trace.joined and outline:
        stroke: Attributes = {"stroke_width": 1.8, "stroke_dasharray": svg.dash(trace.style)}
        parts.append(svg.element("path", class_="line", d=outline, fill="none", **stroke))
    parts += (_points if tooltips else _light_points)(trace, x, y)
    paint = svg.color(trace.style)
    # The more points, the paler: what sums them up must stay readable on top of them.
    opacity = (0.45 if tooltips else 0.25) if trace.line.faint else None
    fill = svg.pale_fill(trace.style) if trace.line.faint else paint
    return svg.element("g", *parts, fill=fill, stroke=paint, opacity=opacity)


def _points(trace: _Trace, x: Scale, y: Scale) -> list[Svg]:
    alone = {run[0] for run in runs(trace.x, trace.y) if len(run) == 1}
    names = trace.line.labels or [scale.readable(value) for value in trace.x]
    sizes = trace.sizes or (1.0,) * len(trace.x)
    drawn = []
    for at, level, name, size in zip(trace.x, trace.y, names, sizes, strict=True):
        if math.isfinite(at) and math.isfinite(level):
            tooltip = f"{trace.line.name}, {name}: {scale.readable(level)}"
            # Points of a plain line are there for the pointer only, unless no line reaches them.
            hidden = not trace.dotted and (at, level) not in alone
            radius = _RADIUS * math.sqrt(size)
            drawn.append(svg.marker(trace.style, x(at), y(level), radius, tooltip, hidden=hidden))
    return drawn


def _light_points(trace: _Trace, x: Scale, y: Scale) -> list[Svg]:
    shown = [
        (x(a), y(b))
        for run in runs(trace.x, trace.y)
        if trace.dotted or len(run) == 1
        for a, b in run
    ]
    return [svg.many_marks(trace.style, shown, _RADIUS)] if shown else []


def runs(*columns: Iterable[float]) -> Iterator[list[tuple[float, ...]]]:
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


def path(xs: Iterable[float], ys: Iterable[float], x: Scale, y: Scale) -> str:
    """A line through the points, with gaps where they are not finite."""
    return "".join(_joined([(x(a), y(b)) for a, b in run]) for run in runs(xs, ys))


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{svg.coordinate(x)} {svg.coordinate(y)}" for x, y in points)
