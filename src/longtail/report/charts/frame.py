"""What surrounds the marks of a figure: legend, reference line, the plot's place and its axes.

From top to bottom: the legend in as many rows as it needs, the title of the y axis written level,
the plot, the tick labels, the title of the x axis.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from longtail.report.charts import svg
from longtail.report.charts.scale import Scale, linear_ticks, log_ticks, readable, tick_labels
from longtail.report.charts.svg import Attributes, Svg

WIDTH, HEIGHT = 480.0, 230.0
ROW = 19.0
_SWATCH, _GAP, _EDGE = 26.0, 14.0, 20.0


class Key(NamedTuple):
    """One entry of a legend; the swatch is drawn around the origin."""

    name: str
    swatch: Svg


class Plot(NamedTuple):
    """The rectangle that holds the data, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Reference:
    """A level to compare with, such as the Bayes error: a dotted line across the plot."""

    value: float
    label: str

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(
                f"the reference {self.label!r} must be at a finite value; got {self.value}; "
                "leave the reference out where it is unknown"
            )

    @property
    def key(self) -> Key:
        """Its legend entry."""
        return Key(self.label, dotted("M-12 0H12", class_=None))

    def across(self, plot: Plot, y: Scale) -> Svg:
        """The line from one side of the plot to the other."""
        outline = f"M{plot.left:.2f} {y(self.value):.2f}H{plot.right:.2f}"
        return dotted(outline, self.label, "reference")


@dataclass(frozen=True)
class Guide:
    """A dotted line to compare with that is no level, such as a diagonal; NaN interrupts it.

    One that belongs to a series has the number of its colour as `style`.
    """

    label: str
    x: Collection[float]
    y: Collection[float]
    style: int | None = None

    @property
    def paint(self) -> str:
        """Its colour."""
        return "currentColor" if self.style is None else svg.color(self.style)

    @property
    def key(self) -> Key:
        """Its legend entry."""
        return Key(self.label, dotted("M-12 0H12", class_=None, paint=self.paint))


def line_key(
    name: str, number: int, line: bool = True, dots: bool = False, pale: bool = False
) -> Key:
    """The legend entry of a series drawn as a line, as dots, or as both; pale dots sum up to it."""
    paint, parts = svg.color(number), []
    if line:
        look: Attributes = {"stroke_width": 1.8, "stroke_dasharray": svg.dash(number)}
        parts.append(svg.element("line", x1=-12, x2=12, **look))
    if dots:
        mark = svg.marker(number, 0, 0, 3.5, class_=None)
        parts.append(
            svg.element("g", mark, fill=svg.pale_fill(number), opacity=0.6) if pale else mark
        )
    return Key(name, svg.element("g", *parts, stroke=paint, fill=paint))


def legend(keys: Sequence[Key], width: float) -> tuple[list[Svg], float]:
    """The entries of a legend in rows no wider than the figure, and the height they take."""
    drawn: list[Svg] = []
    left, row = 0.0, 0
    for name, swatch in keys:
        shown = svg.shorten(name, width - _SWATCH - 8)
        taken = _SWATCH + 6 + svg.text_width(shown)
        if left and left + taken > width:
            left, row = 0.0, row + 1
        moved = f"translate({left + _SWATCH / 2:.1f} {row * ROW + ROW / 2:.1f})"
        text = svg.label(_SWATCH / 2 + 6, svg.FONT * 0.35, shown, full=name)
        drawn.append(svg.element("g", swatch, text, transform=moved))
        left += taken + _GAP
    return drawn, (row + 1) * ROW if keys else 0.0


def dotted(
    outline: str, tooltip: str = "", class_: str | None = "guide", paint: str = "currentColor"
) -> Svg:
    """A thin dotted path."""
    look: Attributes = {"stroke": paint, "stroke_width": 2.0, "stroke_opacity": 0.85}
    ends: Attributes = {"stroke_dasharray": "0.1 3.7", "stroke_linecap": "round", "fill": "none"}
    return svg.element("path", svg.tip(tooltip), class_=class_, d=outline, **look, **ends)


def plot_area(
    width: float,
    height: float,
    above: float,
    y_labels: Sequence[str],
    y_title: str,
    room: float = 0,
) -> Plot:
    """The rectangle for data: so high, below what stands above, right of the tick labels."""
    side = max([room, *map(svg.text_width, y_labels)]) + 10
    top = above + (ROW + 13 if y_title else 10)
    return Plot(side, top, width - _EDGE, top + height)


def y_axis(plot: Plot, scale: Scale, ticks: Sequence[float], title: str, raised: float = 0) -> Svg:
    """Lines across the plot at the ticks, their labels, and the title above, written level."""
    parts = []
    for tick, text in zip(ticks, tick_labels(ticks), strict=True):
        at = scale(tick)
        ends = {"x1": plot.left, "x2": plot.right, "y1": at, "y2": at}
        parts.append(svg.element("line", **ends, stroke_opacity=0.13))
        parts.append(svg.label(plot.left - 8, at + svg.FONT * 0.35, text, anchor="end", faint=True))
    if title:
        shown = svg.shorten(title, plot.right)
        parts.append(svg.label(0, plot.top - raised - 14, shown, faint=True, full=title))
    return svg.element("g", *parts, stroke="currentColor")


def x_axis(plot: Plot, scale: Scale, title: str, width: float) -> tuple[Svg, float]:
    """The base line, the ticks that fit, the title below; and the height down to their end."""
    base = plot.bottom
    parts = [svg.element("line", x1=plot.left, x2=plot.right, y1=base, y2=base, stroke_opacity=0.5)]
    for tick, text in fitting_ticks(scale):
        at = scale(tick)
        parts.append(svg.element("line", x1=at, x2=at, y1=base, y2=base + 4, stroke_opacity=0.5))
        parts.append(centred(at, base + 19, text, width))
    drawn, height = x_title(plot, title, base + 19, width)
    return svg.element("g", *parts, *drawn, stroke="currentColor"), height


def x_title(plot: Plot, title: str, above: float, width: float) -> tuple[list[Svg], float]:
    """The title in the middle under the line of text above it; and the height down to its end."""
    if not title:
        return [], above + 6
    middle = (plot.left + plot.right) / 2
    return [centred(middle, above + ROW, title, width)], above + ROW + 6


def centred(x: float, y: float, text: str, width: float, full: str = "") -> Svg:
    """A line of text around x, moved where it would leave the figure, cut if wider than that."""
    shown = svg.shorten(text, width)
    half = svg.text_width(shown) / 2
    inside = min(max(x, half), width - half)
    return svg.label(inside, y, shown, anchor="middle", faint=True, full=full or text)


def fitting_ticks(scale: Scale) -> list[tuple[float, str]]:
    """The most ticks whose labels keep a distance, each with its label."""
    fitting: list[tuple[float, str]] = []
    for most in range(8, 0, -1):
        ticks = (log_ticks if scale.log else linear_ticks)(scale.low, scale.high, most)
        ticks = [tick for tick in ticks if not scale.whole or tick == round(tick)]
        labels = [readable(tick) for tick in ticks] if scale.log else tick_labels(ticks)
        fitting = list(zip(ticks, labels, strict=True))
        widest = max((svg.text_width(text) for text in labels), default=0)
        steps = [scale(b) - scale(a) for a, b in pairwise(ticks)]
        if min(steps, default=widest + 20) >= widest + 12:
            break
    return fitting


def no_data(plot: Plot) -> Svg:
    """What an empty plot says."""
    middle = (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2
    return svg.label(*middle, "no data", anchor="middle", faint=True)


class Axis(NamedTuple):
    """What an axis shows from end to end."""

    low: float
    high: float
    title: str = ""
    ticks: Sequence[float] | None = None  # of the y axis; the x axis has those that fit
    log: bool = False
    whole: bool = False  # whether there is nothing between whole numbers
    room: float = 0.0  # the least width of the numbers


class Frame(NamedTuple):
    """Legend and axes, and where marks go between them."""

    parts: list[Svg]
    plot: Plot
    x: Scale
    y: Scale
    size: tuple[float, float]


def frame(
    keys: Sequence[Key], x: Axis, y: Axis, width: float, height: float, bare: bool = False
) -> Frame:
    """A legend above two axes; a bare one has no axes."""
    drawn, above = legend(keys, width)
    ticks = [] if bare else linear_ticks(y.low, y.high) if y.ticks is None else y.ticks
    plot = plot_area(width, height, above, tick_labels(ticks), y.title, y.room)
    across = Scale(x.low, x.high, plot.left, plot.right, x.log, x.whole)
    up = Scale(y.low, y.high, plot.bottom, plot.top, y.log)
    if bare:
        return Frame(drawn, plot, across, up, (width, plot.bottom + 6))
    axis, total = x_axis(plot, across, x.title, width)
    drawn += [axis, y_axis(plot, up, ticks, y.title)]
    return Frame(drawn, plot, across, up, (width, total))
