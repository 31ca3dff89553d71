"""How a series of a line chart is drawn: its band, its line, its points."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from longtail.report.charts.legend import Guide, dotted
from longtail.report.charts.scale import Scale, readable
from longtail.report.charts.style import color, dash, many_marks, marker, pale_fill
from longtail.report.charts.svg import Attributes, Svg, coordinate, element

if TYPE_CHECKING:
    from longtail.report.charts.lines import Line

RADIUS = 2.6


class Trace(NamedTuple):
    """A checked series with the number of its colour, dash and marker."""

    line: "Line"
    style: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    sizes: tuple[float, ...]

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:
        """All that the y axis must reach."""
        return self.y, self.low, self.high

    @property
    def joined(self) -> bool:
        """Whether a line goes through the points."""
        return self.line.mark != "dots"

    @property
    def dotted(self) -> bool:
        """Whether the points are seen."""
        return self.line.mark != "line"


def band(trace: Trace, x: Scale, y: Scale) -> Svg:
    """The area around the line."""
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


def marks(trace: Trace, x: Scale, y: Scale, tooltips: bool) -> Svg:
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


def guide_line(guide: Guide, x: Scale, y: Scale) -> Svg:
    """The guide, with a gap where it has no value."""
    runs = _runs(tuple(map(float, guide.x)), tuple(map(float, guide.y)))
    outline = "".join(_path([(x(a), y(b)) for a, b in run]) for run in runs)
    return dotted(outline, guide.label, paint=guide.paint)


def _points(
    trace: Trace, runs: Sequence[Sequence[tuple[float, ...]]], x: Scale, y: Scale
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
            radius = RADIUS * math.sqrt(size)
            drawn.append(marker(trace.style, x(at), y(level), radius, tooltip, hidden=hidden))
    return drawn


def _light_points(
    trace: Trace, runs: Sequence[Sequence[tuple[float, ...]]], x: Scale, y: Scale
) -> list[Svg]:
    shown = [(x(a), y(b)) for run in runs if trace.dotted or len(run) == 1 for a, b in run]
    return [many_marks(trace.style, shown, RADIUS)] if shown else []


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
