"""Strips: every trial of every method as a dot, with the mean and the spread of each."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from longtail.report.charts.chart import Chart
from longtail.report.charts.checks import as_numbers
from longtail.report.charts.frame import WIDTH, Plot, centred, drawing, fitting_ticks, x_axis
from longtail.report.charts.legend import ROW, Reference, reference_line
from longtail.report.charts.scale import Scale, decimals_for, fixed, readable, span_of
from longtail.report.charts.style import color, marker
from longtail.report.charts.svg import Attributes, Svg, element, label, shorten, text_width

_STRIP, _STEP = 26.0, 54.0
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Strip:
    """A named group of values, one per trial; NaN is left out.

    Attributes:
        name: What stands above the strip.
        values: One per trial.
        style: Number of the colour and marker; by default the place in the list.
    """

    name: str
    values: Collection[float]
    style: int | None = None


def strip_chart(
    strips: Sequence[Strip],
    *,
    title: str,
    value_title: str = "",
    reference: Reference | None = None,
    width: float = WIDTH,
) -> Chart:
    """One strip of dots per method, its mean ± standard deviation marked and written above.

    Args:
        strips: The methods, from top to bottom.
        title: What a screen reader says first; not drawn.
        value_title: Name and unit of the values.
        reference: A level drawn through all strips and named above them.
        width: Of the figure; its height follows from the number of strips.

    >>> trials = Strip("post-hoc", [7.9, 8.1, 8.0])
    >>> svg = strip_chart([trials], title="Balanced error", reference=Reference(7.87, "Bayes"))
    >>> svg.count('class="mark"'), "8.00 ± 0.10" in svg
    (3, True)
    """
    rows = [_row(strip, number) for number, strip in enumerate(strips)]
    level = [] if reference is None else [reference.value]
    span = span_of([*level, *(value for row in rows for value in row.values)], pad=0.03)
    top = ROW + 4 if reference else 0.0
    plot = Plot(2, top, width - 2, top + max(len(rows), 1) * _STEP + 4)
    x = Scale(*span, plot.left + 8, plot.right - 8)
    axis, total = x_axis(plot, x, value_title, width)
    drawn = [axis]
    if reference is not None:
        drawn.append(centred(x(reference.value), ROW - 6, reference.label, width))
    for index, row in enumerate(rows):
        drawn += _strip(row, plot, top + index * _STEP, x, reference)
    return drawing((width, total), title, _description(rows, reference), drawn)


class _Row(NamedTuple):
    name: str
    style: int
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values) if self.values else math.nan

    @property
    def spread(self) -> float:
        return stdev(self.values) if len(self.values) > 1 else math.nan

    @property
    def summary(self) -> str:
        if not self.values:
            return "no data"
        if not self.spread > 0:
            return readable(self.mean)
        decimals = min(decimals_for(self.spread, 2), 6)
        return f"{fixed(self.mean, decimals)} ± {fixed(self.spread, decimals)}"


def _row(strip: Strip, number: int) -> _Row:
    values = as_numbers(strip.values, f"values of strip {strip.name!r}")
    finite = tuple(value for value in values if math.isfinite(value))
    return _Row(strip.name, number if strip.style is None else strip.style, finite)


def _strip(row: _Row, plot: Plot, top: float, x: Scale, reference: Reference | None) -> list[Svg]:
    """The line of text, the ground with its grid, the dots, and the mean on top of them."""
    upper = top + _STEP - _STRIP
    lower, middle = upper + _STRIP, upper + _STRIP / 2
    room = plot.right - plot.left - text_width(row.summary) - 16
    drawn = [
        label(plot.left, upper - 7, shorten(row.name, room), full=row.name),
        label(plot.right, upper - 7, row.summary, anchor="end"),
        _ground(plot, upper, [x(tick) for tick, _ in fitting_ticks(x)]),
    ]
    if reference is not None:
        at = x(reference.value)
        drawn.append(reference_line(at, upper, at, lower, reference.label))
    dots = [
        marker(
            row.style,
            x(value),
            # Multiples of the golden ratio spread the dots evenly, and alike in every rendering.
            middle + ((index * _GOLDEN) % 1 - 0.5) * (_STRIP - 9),
            2.4,
            f"{row.name}, trial {index + 1}: {readable(value)}",
        )
        for index, value in enumerate(row.values)
    ]
    paint = {"fill": color(row.style), "stroke": color(row.style)}
    drawn.append(element("g", *dots, **paint, opacity=0.55))
    return [*drawn, *_mean(row, middle, x)]


def _ground(plot: Plot, top: float, ticks: Sequence[float]) -> Svg:
    size = {"x": plot.left, "y": top, "width": plot.right - plot.left, "height": _STRIP}
    grid = "".join(f"M{at:.2f} {top:.2f}v{_STRIP:g}" for at in ticks)
    ground = element("rect", **size, rx=3, fill="currentColor", fill_opacity=0.045)
    lines = element("path", d=grid, stroke="currentColor", stroke_opacity=0.13)
    return element("g", ground, lines)


def _mean(row: _Row, middle: float, x: Scale) -> list[Svg]:
    if not row.values:
        return []
    outline = f"M{x(row.mean):.2f} {middle - 10:.2f}v20"
    if not math.isnan(row.spread):
        low, high = (x(row.mean + sign * row.spread) for sign in (-1, 1))
        outline += f"M{low:.2f} {middle:.2f}H{high:.2f}"
    tooltip = element("title", f"{row.name}: {row.summary}")
    look: Attributes = {"stroke": "currentColor", "stroke_width": 2.2}
    return [element("path", tooltip, class_="mean", d=outline, **look)]


def _description(rows: Sequence[_Row], reference: Reference | None) -> str:
    said = [f"{row.name}: {row.summary} over {len(row.values)} trials." for row in rows]
    if reference is not None:
        said.append(f"Reference: {reference.label}.")
    return " ".join(said)
