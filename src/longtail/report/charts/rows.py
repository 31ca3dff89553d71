"""A row a method: every trial as a dot with mean and spread, or a value with its interval."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longtail.flows.figure_curves import mean_and_spread
from longtail.report.charts import frame, svg
from longtail.report.charts.chart import Chart, as_numbers, drawing
from longtail.report.charts.frame import Key, Plot, Reference
from longtail.report.charts.scale import Scale, decimals_for, fixed, readable, span_of
from longtail.report.charts.svg import Attributes, Svg

_STRIP, _STEP = 26.0, 54.0
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Strip:
    """A named group of values, one per trial; NaN is left out."""

    name: str  # what stands above the strip
    values: Collection[float]  # one per trial
    style: int | None = None  # number of the colour and marker; by default the place in the list


def strip_chart(
    strips: Sequence[Strip],
    *,
    title: str,
    value_title: str = "",
    reference: Reference | None = None,
    width: float = frame.WIDTH,
) -> Chart:
    """One strip of dots per method, its mean ± standard deviation marked and written above.

    The reference is drawn through all strips; the title is read aloud and not drawn.

    >>> trials = Strip("post-hoc", [7.9, 8.1, 8.0])
    >>> svg = strip_chart([trials], title="Balanced error", reference=Reference(7.87, "Bayes"))
    >>> svg.count('class="mark"'), "8.00 ± 0.10" in svg
    (3, True)
    """
    rows = [_Row.of(strip, number) for number, strip in enumerate(strips)]
    values = [value for row in rows for value in row.values]
    drawn, plot, x, size = _row_frame(values, len(rows), _STEP, value_title, reference, width)
    if reference is not None:
        drawn.append(frame.centred(x(reference.value), plot.top - 10, reference.label, width))
    for index, row in enumerate(rows):
        drawn += _strip(row, plot, plot.top + index * _STEP, x, reference)
    sentences = [f"{row.name}: {row.summary} over {len(row.values)} trials." for row in rows]
    sentences += [] if reference is None else [f"Reference: {reference.label}."]
    return drawing(size, title, " ".join(sentences), drawn)


def _row_frame(
    levels: Iterable[float],
    rows: int,
    step: float,
    value_title: str,
    reference: Reference | None,
    width: float,
    above: float = 0.0,
) -> tuple[list[Svg], Plot, Scale, tuple[float, float]]:
    """The axis under so many rows, where they go, the scale of their values, and the size."""
    beside = [] if reference is None else [reference.value]
    top = above + (frame.ROW + 4 if reference else 0.0)
    plot = Plot(2, top, width - 2, top + max(rows, 1) * step + 4)
    x = Scale(*span_of([*beside, *levels], pad=0.03), plot.left + 8, plot.right - 8)
    axis, total = frame.x_axis(plot, x, value_title, width)
    return [axis], plot, x, (width, total)


def _names(name: str, text: str, plot: Plot, y: float) -> list[Svg]:
    """What stands above a row: its name at the left, and what is said of it at the right."""
    room = plot.right - plot.left - svg.text_width(text) - 16
    shown = svg.label(plot.left, y, svg.shorten(name, room), full=name)
    return [shown, svg.label(plot.right, y, text, anchor="end")]


class _Row(NamedTuple):
    name: str
    style: int
    values: list[float]
    mean: float
    spread: float

    @classmethod
    def of(cls, strip: Strip, number: int) -> _Row:
        every = as_numbers(strip.values, f"values of strip {strip.name!r}")
        values = [value for value in every if math.isfinite(value)]
        style = number if strip.style is None else strip.style
        return cls(strip.name, style, values, *mean_and_spread(values))

    @property
    def summary(self) -> str:
        if not self.values:
            return "no data"
        if not self.spread > 0:
            return readable(self.mean)
        decimals = min(decimals_for(self.spread, 2), 6)
        return f"{fixed(self.mean, decimals)} ± {fixed(self.spread, decimals)}"


def _strip(row: _Row, plot: Plot, top: float, x: Scale, reference: Reference | None) -> list[Svg]:
    """The line of text, the ground with its grid, the dots, and the mean on top of them."""
    upper = top + _STEP - _STRIP
    lower, middle = upper + _STRIP, upper + _STRIP / 2
    drawn = _names(row.name, row.summary, plot, upper - 7)
    box: Attributes = {"x": plot.left, "y": upper, "width": plot.right - plot.left}
    ink: Attributes = {"rx": 3, "fill": "currentColor", "fill_opacity": 0.045}
    ground = svg.element("rect", **box, height=_STRIP, **ink)
    drawn.append(svg.element("g", ground, _grid(x, upper, f"v{_STRIP:g}")))
    if reference is not None:
        at = x(reference.value)
        drawn.append(frame.reference_line(at, upper, at, lower, reference.label))
    dots = []
    for index, value in enumerate(row.values):
        # Multiples of the golden ratio spread the dots evenly, and alike in every rendering.
        y = middle + ((index * _GOLDEN) % 1 - 0.5) * (_STRIP - 9)
        tooltip = f"{row.name}, trial {index + 1}: {readable(value)}"
        dots.append(svg.marker(row.style, x(value), y, 2.4, tooltip))
    paint = {"fill": svg.color(row.style), "stroke": svg.color(row.style)}
    drawn.append(svg.element("g", *dots, **paint, opacity=0.55))
    if row.values:
        outline = f"M{x(row.mean):.2f} {middle - 10:.2f}v20"
        if not math.isnan(row.spread):
            low, high = (x(row.mean + sign * row.spread) for sign in (-1, 1))
            outline += f"M{low:.2f} {middle:.2f}H{high:.2f}"
        look: Attributes = {"d": outline, "stroke": "currentColor", "stroke_width": 2.2}
        tooltip = svg.tip(f"{row.name}: {row.summary}")
        drawn.append(svg.element("path", tooltip, class_="mean", **look))
    return drawn


def _grid(x: Scale, top: float, down: str) -> Svg:
    lines = "".join(f"M{x(tick):.2f} {top:.2f}{down}" for tick, _ in frame.fitting_ticks(x))
    return svg.element("path", d=lines, stroke="currentColor", stroke_opacity=0.13)


_INTERVAL_STEP = 40.0


@dataclass(frozen=True)
class IntervalRow:
    """A value with what is known of it."""

    name: str  # what stands above the line
    value: float  # where it is marked; NaN leaves the line empty
    low: float = math.nan  # the lower end, NaN if there is none
    high: float = math.nan  # the upper end
    text: str = ""  # what is written at the right
    dots: Sequence[float] = ()  # values of single runs
    style: int = 0  # number of the colour


def interval_chart(
    intervals: Sequence[IntervalRow],
    *,
    title: str,
    value_title: str = "",
    reference: Reference | None = None,
    colors: Mapping[int, str] | None = None,
    width: float = 480.0,
) -> Chart:
    """One line per method: its value, its interval, and its runs as dots.

    The reference is drawn through all lines; `colors` says what colours mean, for the legend.
    """
    levels = [v for each in intervals for v in (each.value, each.low, each.high, *each.dots)]
    keys = []
    for style, name in (colors or {}).items():
        paint, dot = svg.color(style), svg.marker(0, 0, 0, 5.0, class_=None)
        keys.append(Key(name, svg.element("g", dot, fill=paint, stroke=paint)))
    drawn, above = frame.legend(keys, width)
    number = len(intervals)
    axis, plot, x, size = _row_frame(
        levels, number, _INTERVAL_STEP, value_title, reference, width, above
    )
    drawn += [_grid(x, plot.top, f"V{plot.bottom:.2f}"), *axis]
    if reference is not None:
        at = x(reference.value)
        drawn.append(frame.centred(at, plot.top - 10, reference.label, width))
        for index in range(number):  # beside the lines, and not through the names
            low = plot.top + (index + 1) * _INTERVAL_STEP
            drawn.append(frame.reference_line(at, low - 20, at, low - 2, reference.label))
    for index, each in enumerate(intervals):
        drawn += _line(each, plot, plot.top + index * _INTERVAL_STEP, x)
    description = " ".join(f"{each.name}: {each.text}." for each in intervals)
    return drawing(size, title, description, drawn)


def _line(each: IntervalRow, plot: Plot, top: float, x: Scale) -> list[Svg]:
    middle, paint = top + _INTERVAL_STEP - 11, svg.color(each.style)
    drawn = _names(each.name, each.text, plot, top + 15)
    if not math.isfinite(each.value):
        return drawn
    tooltip = f"{each.name}: {each.text}"
    if math.isfinite(each.low) and math.isfinite(each.high):
        ends = f"M{x(each.low):.2f} {middle:.2f}H{x(each.high):.2f}"
        caps = "".join(f"M{x(end):.2f} {middle - 4:.2f}v8" for end in (each.low, each.high))
        look: Attributes = {"stroke": paint, "stroke_width": 2.0, "fill": "none"}
        drawn.append(
            svg.element("path", svg.tip(tooltip), class_="interval", d=ends + caps, **look)
        )
    dots = [svg.marker(0, x(dot), middle, 2.6, f"{each.name}: {dot:.4g}") for dot in each.dots]
    if len(dots) > 1:
        drawn.append(svg.element("g", *dots, fill="currentColor", stroke="none", opacity=0.45))
    mark = svg.marker(0, x(each.value), middle, 5.0, tooltip, class_="mean")
    return [*drawn, svg.element("g", mark, fill=paint, stroke=paint)]
