"""Intervals: a line a method, its value and interval, and where there are several its runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Plot, centred, drawing, fitting_ticks, x_axis
from longtail.report.charts.legend import ROW, Key, Reference, legend, reference_line
from longtail.report.charts.scale import Scale, span_of
from longtail.report.charts.style import color, marker
from longtail.report.charts.svg import Attributes, Svg, element, label, shorten, text_width

_STEP = 40.0


@dataclass(frozen=True)
class Interval:
    """A value with what is known of it.

    Attributes:
        name: What stands above the line.
        value: Where it is marked; NaN leaves the line empty.
        low: The lower end, NaN if there is none.
        high: The upper end.
        text: What is written at the right.
        dots: Values of single runs.
        style: Number of the colour.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    text: str = ""
    dots: Sequence[float] = ()
    style: int = 0


def interval_chart(
    intervals: Sequence[Interval],
    *,
    title: str,
    value_title: str = "",
    reference: Reference | None = None,
    colors: Mapping[int, str] | None = None,
    width: float = 480.0,
) -> Chart:
    """One line per method: its value, its interval, and its runs as dots.

    Args:
        intervals: From top to bottom.
        title: What a screen reader says first; not drawn.
        value_title: Name and unit of the values.
        reference: A level drawn through all lines and named above them.
        colors: What the colours mean, for the legend.
        width: Of the figure; its height follows from the number of lines.

    >>> both = [Interval("CE", 0.38, 0.37, 0.39), Interval("LA", 0.44, 0.42, 0.46)]
    >>> interval_chart(both, title="Accuracy").count('class="interval"')
    2
    """
    levels = [v for each in intervals for v in (each.value, each.low, each.high, *each.dots)]
    levels += [] if reference is None else [reference.value]
    keys = [Key(name, _swatch(style)) for style, name in (colors or {}).items()]
    drawn, legend_height = legend(keys, width)
    top = legend_height + (ROW + 4 if reference else 0.0)
    plot = Plot(2, top, width - 2, top + max(len(intervals), 1) * _STEP + 4)
    x = Scale(*span_of(levels, pad=0.03), plot.left + 8, plot.right - 8)
    axis, total = x_axis(plot, x, value_title, width)
    drawn += [_grid(plot, x), axis]
    if reference is not None:
        at = x(reference.value)
        drawn.append(centred(at, top - 10, reference.label, width))
        for index in range(len(intervals)):  # beside the lines, and not through the names
            low = top + (index + 1) * _STEP
            drawn.append(reference_line(at, low - 20, at, low - 2, reference.label))
    for index, each in enumerate(intervals):
        drawn += _line(each, plot, top + index * _STEP, x)
    said = " ".join(f"{each.name}: {each.text}." for each in intervals)
    return drawing((width, total), title, said, drawn)


def _swatch(style: int) -> Svg:
    paint = color(style)
    return element("g", marker(0, 0, 0, 5.0, class_=None), fill=paint, stroke=paint)


def _grid(plot: Plot, x: Scale) -> Svg:
    lines = "".join(
        f"M{x(tick):.2f} {plot.top:.2f}V{plot.bottom:.2f}" for tick, _ in fitting_ticks(x)
    )
    return element("path", d=lines, stroke="currentColor", stroke_opacity=0.13)


def _line(each: Interval, plot: Plot, top: float, x: Scale) -> list[Svg]:
    middle, paint = top + _STEP - 11, color(each.style)
    room = plot.right - plot.left - text_width(each.text) - 16
    drawn = [
        label(plot.left, top + 15, shorten(each.name, room), full=each.name),
        label(plot.right, top + 15, each.text, anchor="end"),
    ]
    if not math.isfinite(each.value):
        return drawn
    tooltip = element("title", f"{each.name}: {each.text}")
    if math.isfinite(each.low) and math.isfinite(each.high):
        ends = f"M{x(each.low):.2f} {middle:.2f}H{x(each.high):.2f}"
        caps = "".join(f"M{x(end):.2f} {middle - 4:.2f}v8" for end in (each.low, each.high))
        look: Attributes = {"stroke": paint, "stroke_width": 2.0, "fill": "none"}
        drawn.append(element("path", tooltip, class_="interval", d=ends + caps, **look))
    dots = [marker(0, x(dot), middle, 2.6, f"{each.name}: {dot:.4g}") for dot in each.dots]
    if len(dots) > 1:
        drawn.append(element("g", *dots, fill="currentColor", stroke="none", opacity=0.45))
    mark = marker(0, x(each.value), middle, 5.0, f"{each.name}: {each.text}", class_="mean")
    return [*drawn, element("g", mark, fill=paint, stroke=paint)]
