"""Grouped bars: a few methods over a few categories, such as many, medium and few."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from longtail.report.charts import frame, scale, svg
from longtail.report.charts.chart import Chart, as_columns, drawing
from longtail.report.charts.frame import Key, Plot, Reference
from longtail.report.charts.scale import Scale
from longtail.report.charts.svg import Attributes, Svg

_WIDEST, _FILLED, _LINE = 56.0, 0.82, 16.0


@dataclass(frozen=True)
class Bars:
    """A named series with one value per category; NaN leaves a gap."""

    name: str
    values: Collection[float]
    low: Collection[float] | None = None  # lower end of the error whiskers; needs high
    high: Collection[float] | None = None
    style: int | None = None  # of the colour and hatch; by default the place in the list


def bar_chart(
    categories: Sequence[str],
    bars: Sequence[Bars],
    *,
    title: str,
    category_title: str = "",
    y_title: str = "",
    reference: Reference | None = None,
    width: float = frame.WIDTH,
    height: float = frame.HEIGHT,
) -> Chart:
    """Bars side by side in each category, with their values above them where they fit.

    The title is read aloud and not drawn; height is that of the plot alone.

    >>> accuracy = Bars("cross-entropy", [80.1, 52.0, 11.3])
    >>> svg = bar_chart(["many", "medium", "few"], [accuracy], title="Accuracy by group")
    >>> svg.count('class="mark"')
    3
    """
    identity = f"{crc32(repr((categories, bars, title)).encode()):08x}"
    columns = [_column(item, number, categories, identity) for number, item in enumerate(bars)]
    levels = [v for column in columns for part in column.levels for v in part if math.isfinite(v)]
    keys = [Key(column.name, column.swatch) for column in columns]
    beside = [0.0]
    if reference is not None:
        keys.append(reference.key)
        beside.append(reference.value)
    ticks = scale.covering_ticks(*scale.span_of([*levels, *beside]))
    drawn, above = frame.legend(keys, width)
    plot = frame.plot_area(width, height, above, scale.tick_labels(ticks), y_title)
    slot = (plot.right - plot.left) / max(len(categories), 1)
    bar = min(slot * _FILLED / max(len(columns), 1), _WIDEST)
    decimals = scale.decimals_for(max(map(abs, levels), default=0.0), 3)
    texts = (scale.fixed(value, decimals) for value in levels)
    longest = max((svg.text_width(text, svg.FONT - 1) for text in texts), default=0.0)
    upright = longest > bar - 2
    headroom = longest + 4 if upright else _LINE
    plot = plot._replace(top=plot.top + headroom, bottom=plot.bottom + headroom)
    y = Scale(ticks[0], ticks[-1], plot.bottom, plot.top)
    drawn += [column.pattern for column in columns]
    drawn.append(frame.y_axis(plot, y, ticks, y_title, raised=headroom))
    for number, column in enumerate(columns):
        for index, category in enumerate(categories):
            left = plot.left + (index + 0.5) * slot + (number - len(columns) / 2) * bar
            drawn.append(_bar(column, index, category, (left, bar), y, decimals, upright))
    if reference is not None:
        drawn.append(reference.across(plot, y))
    names, below = _names(categories, plot, slot, width)
    titles, total = frame.x_title(plot, category_title, below, width)
    empty = [] if levels else [frame.no_data(plot)]
    ends = {"x1": plot.left, "x2": plot.right, "y1": y(0), "y2": y(0)}
    base = svg.element("line", **ends, stroke="currentColor", stroke_opacity=0.5)
    drawn += [base, *names, *titles, *empty]
    sentences = [f"{len(columns)} series over {', '.join(categories)}."]
    sentences += [f"{c.name}: {', '.join(map(scale.readable, c.values))}." for c in columns]
    sentences += [] if reference is None else [f"Reference: {reference.label}."]
    return drawing((width, total), title, " ".join(sentences), drawn)


class _Column(NamedTuple):
    name: str
    fill: str
    pattern: Svg
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:
        return self.values, self.low, self.high

    @property
    def swatch(self) -> Svg:
        return svg.element("rect", x=-11, y=-6, width=22, height=12, fill=self.fill)


def _column(bars: Bars, number: int, categories: Sequence[str], identity: str) -> _Column:
    columns = as_columns(
        f"bars {bars.name!r}",
        {"categories": categories},
        values=bars.values,
        low=bars.low,
        high=bars.high,
    )
    style = number if bars.style is None else bars.style
    fill, pattern = svg.hatch(style, f"hatch-{identity}-{number}")
    return _Column(bars.name, fill, pattern, *columns.values())


def _bar(
    column: _Column,
    index: int,
    category: str,
    across: tuple[float, float],
    y: Scale,
    decimals: int,
    upright: bool,
) -> Svg:
    value = column.values[index]
    if not math.isfinite(value):
        return Svg()
    left, bar = across
    low, high = (column.low[index], column.high[index]) if column.low else (math.nan, math.nan)
    whiskered = math.isfinite(low) and math.isfinite(high)
    between = f" ({scale.readable(low)} to {scale.readable(high)})" if whiskered else ""
    tooltip = f"{column.name}, {category}: {scale.readable(value)}{between}"
    top, bottom = sorted((y(value), y(0)))
    box = {"x": left + 1, "y": top, "width": max(bar - 2, 0.5), "height": bottom - top}
    parts = [svg.element("rect", svg.tip(tooltip), class_="mark", fill=column.fill, **box)]
    middle = left + bar / 2
    if whiskered:
        ends = f"M{middle:.2f} {y(low):.2f}V{y(high):.2f}"
        caps = "".join(f"M{middle - 3:.2f} {y(end):.2f}h6" for end in (low, high))
        look: Attributes = {"stroke": "currentColor", "stroke_width": 1.3, "fill": "none"}
        parts.append(svg.element("path", class_="whisker", d=ends + caps, **look))
        top = min(top, y(high))
    # Above the bar and its whisker; over a bar that hangs down, above the base line.
    y_text, small = top - 4, svg.FONT - 1
    text = scale.fixed(value, decimals)
    if not upright:
        written = svg.label(middle, y_text, text, anchor="middle")
        parts.append(svg.element("g", written, font_size=small))
    elif bar >= svg.FONT:  # else there is room in neither direction: the tooltip has the value
        turned = f"translate({middle + svg.FONT * 0.33:.2f} {y_text:.2f}) rotate(-90)"
        parts.append(svg.element("g", svg.label(0, 0, text), font_size=small, transform=turned))
    return svg.element("g", *parts)


def _names(
    categories: Sequence[str], plot: Plot, slot: float, width: float
) -> tuple[list[Svg], float]:
    """The categories' names in lines under their slots, and the lowest baseline."""
    drawn, most = [], 1
    for index, category in enumerate(categories):
        lines = svg.wrap(category, slot - 6)
        most = max(most, len(lines))
        middle = plot.left + (index + 0.5) * slot
        drawn += [
            frame.centred(middle, plot.bottom + 18 + row * _LINE, line, width, full=category)
            for row, line in enumerate(lines)
        ]
    return drawn, plot.bottom + 18 + (most - 1) * _LINE
