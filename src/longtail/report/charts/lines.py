"""Lines over x: curves with bands around them, or a dot per class along a long tail."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from longtail.report.charts.checks import as_numbers, check_lengths, check_pair
from longtail.report.charts.frame import HEIGHT, WIDTH, drawing, no_data, plot_area, x_axis, y_axis
from longtail.report.charts.legend import Reference, legend, line_key, reference_key, reference_line
from longtail.report.charts.scale import Scale, covering_ticks, readable, span_of, tick_labels
from longtail.report.charts.style import color, dash, marker
from longtail.report.charts.svg import Attributes, Svg, coordinate, element


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
    """

    name: str
    x: Collection[float]
    y: Collection[float]
    low: Collection[float] | None = None
    high: Collection[float] | None = None
    labels: Sequence[str] | None = None
    mark: Literal["line", "dots", "both"] = "line"
    style: int | None = None


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_title: str = "",
    y_title: str = "",
    reference: Reference | None = None,
    log_x: bool = False,
    width: float = WIDTH,
    height: float = HEIGHT,
) -> Svg:
    """Series over x, with bands where they have them and one level to compare with.

    Args:
        lines: The series.
        title: What a screen reader says first; not drawn.
        x_title: Name and unit of x.
        y_title: Name and unit of y.
        reference: A level drawn across and named in the legend.
        log_x: Whether x is drawn by its logarithm.
        width: Of the figure.
        height: Of the plot; legend and titles come on top of it.

    >>> curve = Line("post-hoc", x=[0, 1, 2], y=[17.1, 8.0, 9.5])
    >>> svg = line_chart([curve], title="Error by tau", reference=Reference(7.87, "Bayes 7.87 %"))
    >>> svg.count('class="mark"')
    3
    """
    traces = [_trace(line, number, log_x) for number, line in enumerate(lines)]
    levels = [value for trace in traces for part in trace.levels for value in part]
    level = [] if reference is None else [reference.value]
    ticks = covering_ticks(*span_of(levels + level))
    keys = [line_key(t.line.name, t.style, _joined(t), _dotted(t)) for t in traces]
    drawn, above = legend(keys + reference_key(reference), width)
    plot = plot_area(width, height, above, tick_labels(ticks), y_title)
    x_low, x_high = span_of([v for trace in traces for v in trace.x], pad=0.02, log=log_x)
    x = Scale(x_low, x_high, plot.left, plot.right, log_x)
    y = Scale(ticks[0], ticks[-1], plot.bottom, plot.top)
    axis, total = x_axis(plot, x, x_title, width)
    drawn += [axis, y_axis(plot, y, ticks, y_title)]
    drawn += [_band(trace, x, y) for trace in traces if trace.low]
    if reference is not None:
        at = y(reference.value)
        drawn.append(reference_line(plot.left, at, plot.right, at, reference.label))
    drawn += [_marks(trace, x, y) for trace in traces]
    if not any(math.isfinite(value) for value in levels):
        drawn.append(no_data(plot))
    return drawing((width, total), title, _description(traces, x_title, reference), drawn)


class _Trace(NamedTuple):
    line: Line
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:
        return self.y, self.low, self.high


def _trace(line: Line, number: int, log_x: bool) -> _Trace:
    what = f"line {line.name!r}"
    check_pair(what, line.low, line.high)
    check_lengths(what, x=line.x, y=line.y, low=line.low, high=line.high, labels=line.labels)
    x, y = as_numbers(line.x, f"x of {what}"), as_numbers(line.y, f"y of {what}")
    low = as_numbers(() if line.low is None else line.low, f"low of {what}")
    high = as_numbers(() if line.high is None else line.high, f"high of {what}")
    if log_x and any(value <= 0 for value in x):
        raise ValueError(
            f"{what} must have x above zero on a logarithmic axis; got {min(x):g}; "
            "leave such points out or use log_x=False"
        )
    return _Trace(line, number if line.style is None else line.style, x, y, low, high)


def _joined(trace: _Trace) -> bool:
    return trace.line.mark != "dots"


def _dotted(trace: _Trace) -> bool:
    return trace.line.mark != "line"


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


def _band(trace: _Trace, x: Scale, y: Scale) -> Svg:
    outline = ""
    for run in _runs(trace.x, trace.low, trace.high):
        there = [(x(at), y(high)) for at, _, high in run]
        back = [(x(at), y(low)) for at, low, _ in reversed(run)]
        outline += _path(there + back) + "Z"
    paint = color(trace.style)
    # The faint stroke keeps a band of a single point visible.
    look: Attributes = {
        "fill": paint,
        "fill_opacity": 0.14,
        "stroke": paint,
        "stroke_opacity": 0.25,
    }
    return element("path", class_="band", d=outline, **look) if outline else Svg()


def _marks(trace: _Trace, x: Scale, y: Scale) -> Svg:
    runs = list(_runs(trace.x, trace.y))
    parts = []
    if _joined(trace) and runs:
        outline = "".join(_path([(x(a), y(b)) for a, b in run]) for run in runs)
        stroke: Attributes = {"stroke_width": 1.8, "stroke_dasharray": dash(trace.style)}
        parts.append(element("path", class_="line", d=outline, fill="none", **stroke))
    alone = {run[0] for run in runs if len(run) == 1}
    names = trace.line.labels or [readable(value) for value in trace.x]
    for at, level, name in zip(trace.x, trace.y, names, strict=True):
        if math.isfinite(at) and math.isfinite(level):
            tooltip = f"{trace.line.name}, {name}: {readable(level)}"
            # Points of a plain line are there for the pointer only, unless no line reaches them.
            hidden = not _dotted(trace) and (at, level) not in alone
            parts.append(marker(trace.style, x(at), y(level), 2.6, tooltip, hidden=hidden))
    return element("g", *parts, fill=color(trace.style), stroke=color(trace.style))


def _description(traces: Sequence[_Trace], x_title: str, reference: Reference | None) -> str:
    said = [f"{len(traces)} series over {x_title or 'x'}."]
    for trace in traces:
        finite = [value for value in trace.y if math.isfinite(value)]
        if finite:
            ends = f"starts at {readable(finite[0])} and ends at {readable(finite[-1])}"
            inside = f"between {readable(min(finite))} and {readable(max(finite))}"
            said.append(f"{trace.line.name} {ends}, {inside}.")
    if reference is not None:
        said.append(f"Reference: {reference.label}.")
    return " ".join(said)
