"""A row a method: its value with an interval, every run or trial as a dot, the number beside."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from longtail.flows.figure_curves import mean_and_spread
from longtail.report.charts import frame, svg
from longtail.report.charts.chart import Chart, as_numbers, drawing
from longtail.report.charts.frame import Key, Plot, Reference
from longtail.report.charts.scale import Scale, decimals_for, fixed, readable, span_of
from longtail.report.charts.svg import Svg

_STEP = 44.0
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Strip:
    """A named group of values, one per trial; NaN is left out."""

    name: str  # what stands above the strip
    values: Collection[float]  # one per trial
    style: int | None = None  # number of the colour; by default the place in the list


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
    rows = [_summed_up(strip, number) for number, strip in enumerate(strips)]
    return interval_chart(
        rows, title=title, value_title=value_title, reference=reference, width=width
    )


def _summed_up(strip: Strip, number: int) -> IntervalRow:
    every = as_numbers(strip.values, f"values of strip {strip.name!r}")
    values = [value for value in every if math.isfinite(value)]
    mean, spread = mean_and_spread(values)
    text = readable(mean) if values else "no data"
    if spread > 0:
        decimals = min(decimals_for(spread, 2), 6)
        text = f"{fixed(mean, decimals)} ± {fixed(spread, decimals)}"
    style = number if strip.style is None else strip.style
    return IntervalRow(strip.name, mean, mean - spread, mean + spread, text, values, style)


def interval_chart(
    intervals: Sequence[IntervalRow],
    *,
    title: str,
    value_title: str = "",
    reference: Reference | None = None,
    colors: Mapping[int, str] | None = None,
    width: float = frame.WIDTH,
) -> Chart:
    """One line per method: its value, its interval, and its runs as dots.

    The reference is drawn through all lines; `colors` says what colours mean, for the legend.
    """
    keys = []
    for style, name in (colors or {}).items():
        paint, dot = svg.color(style), svg.marker(0, 0, 0, 5.0, class_=None)
        keys.append(Key(name, svg.element("g", dot, fill=paint, stroke=paint)))
    drawn, above = frame.legend(keys, width)
    levels = [v for each in intervals for v in (each.value, each.low, each.high, *each.dots)]
    levels += [] if reference is None else [reference.value]
    top = above + (frame.ROW + 4 if reference else 0.0)
    plot = Plot(2, top, width - 2, top + max(len(intervals), 1) * _STEP + 4)
    x = Scale(*span_of(levels, pad=0.03), plot.left + 8, plot.right - 8)
    axis, total = frame.x_axis(plot, x, value_title, width)
    grid = "".join(
        f"M{x(tick):.2f} {plot.top:.2f}V{plot.bottom:.2f}" for tick, _ in frame.fitting_ticks(x)
    )
    drawn += [svg.element("path", d=grid, stroke="currentColor", stroke_opacity=0.13), axis]
    if reference is not None:
        drawn.append(frame.centred(x(reference.value), plot.top - 10, reference.label, width))
    for index, each in enumerate(intervals):
        drawn += _row(each, plot, plot.top + index * _STEP, x, reference)
    sentences = [f"{each.name}: {each.text}{_over(each)}." for each in intervals]
    sentences += [] if reference is None else [f"Reference: {reference.label}."]
    return drawing((width, total), title, " ".join(sentences), drawn)


def _over(each: IntervalRow) -> str:
    return f" over {len(each.dots)} runs" if len(each.dots) > 1 else ""


def _row(
    each: IntervalRow, plot: Plot, top: float, x: Scale, reference: Reference | None
) -> list[Svg]:
    """The line of text, the reference, the dots, and the value with its interval on top."""
    middle, paint = top + _STEP - 12, svg.color(each.style)
    room = plot.right - plot.left - svg.text_width(each.text) - 16
    drawn = [
        svg.label(plot.left, top + 15, svg.shorten(each.name, room), full=each.name),
        svg.label(plot.right, top + 15, each.text, anchor="end"),
    ]
    if reference is not None:  # beside the line, and not through the name
        outline = f"M{x(reference.value):.2f} {middle - 10:.2f}v20"
        drawn.append(frame.dotted(outline, reference.label, "reference"))
    if not math.isfinite(each.value):
        return drawn
    # Multiples of the golden ratio spread the dots evenly, and alike in every rendering.
    dots = [
        svg.marker(
            0, x(dot), middle + ((at * _GOLDEN) % 1 - 0.5) * 16, 2.4, f"{each.name}: {dot:.4g}"
        )
        for at, dot in enumerate(each.dots)
    ]
    if len(dots) > 1:
        drawn.append(svg.element("g", *dots, fill=paint, stroke=paint, opacity=0.5))
    tip = f"{each.name}: {each.text}"
    if math.isfinite(each.low) and math.isfinite(each.high):
        ends = f"M{x(each.low):.2f} {middle:.2f}H{x(each.high):.2f}"
        ends += "".join(f"M{x(end):.2f} {middle - 4:.2f}v8" for end in (each.low, each.high))
        line = svg.element("path", svg.tip(tip), class_="interval", d=ends, stroke_width=2.0)
        drawn.append(svg.element("g", line, stroke="currentColor", fill="none"))
    mark = svg.marker(0, x(each.value), middle, 5.0, tip, class_="mean")
    return [*drawn, svg.element("g", mark, fill=paint, stroke="currentColor")]
