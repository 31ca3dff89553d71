"""What surrounds the marks of a figure: legend, reference line, the plot's place and its axes.

From top to bottom: the legend in as many rows as it needs, the title of the y axis written level,
the plot, the tick labels, the title of the x axis.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from longtail.report.charts.scale import Scale, linear_ticks, log_ticks, readable, tick_labels
from longtail.report.charts.svg import (
    FONT,
    Attributes,
    Svg,
    color,
    dash,
    element,
    label,
    marker,
    pale_fill,
    shorten,
    text_width,
)

ROW = 19.0
_SWATCH, _GAP = 26.0, 14.0


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
        return "currentColor" if self.style is None else color(self.style)


class Key(NamedTuple):
    """One entry of a legend; the swatch is drawn around the origin."""

    name: str
    swatch: Svg


def line_key(
    name: str, number: int, line: bool = True, dots: bool = False, pale: bool = False
) -> Key:
    """The legend entry of a series drawn as a line, as dots, or as both; pale dots sum up to it."""
    paint, parts = color(number), []
    if line:
        look: Attributes = {"stroke_width": 1.8, "stroke_dasharray": dash(number)}
        parts.append(element("line", x1=-12, x2=12, **look))
    if dots:
        mark = marker(number, 0, 0, 3.5, class_=None)
        parts.append(element("g", mark, fill=pale_fill(number), opacity=0.6) if pale else mark)
    return Key(name, element("g", *parts, stroke=paint, fill=paint))


def guide_key(guide: Guide) -> Key:
    """The legend entry of a guide."""
    return Key(guide.label, dotted("M-12 0H12", class_=None, paint=guide.paint))


def reference_key(reference: Reference | None) -> list[Key]:
    """The legend entry of the reference line, if there is one."""
    if reference is None:
        return []
    return [Key(reference.label, reference_line(-12, 0, 12, 0, class_=None))]


def legend(keys: Sequence[Key], width: float) -> tuple[list[Svg], float]:
    """The entries of a legend in rows no wider than the figure, and the height they take.

    >>> drawn, height = legend([line_key("CE", 0), line_key("LA", 1)], 480)
    >>> len(drawn), height
    (2, 19.0)
    """
    drawn: list[Svg] = []
    left, row = 0.0, 0
    for name, swatch in keys:
        shown = shorten(name, width - _SWATCH - 8)
        taken = _SWATCH + 6 + text_width(shown)
        if left and left + taken > width:
            left, row = 0.0, row + 1
        moved = f"translate({left + _SWATCH / 2:.1f} {row * ROW + ROW / 2:.1f})"
        text = label(_SWATCH / 2 + 6, FONT * 0.35, shown, full=name)
        drawn.append(element("g", swatch, text, transform=moved))
        left += taken + _GAP
    return drawn, (row + 1) * ROW if keys else 0.0


def dotted(
    outline: str, tooltip: str = "", class_: str | None = "guide", paint: str = "currentColor"
) -> Svg:
    """A thin dotted path."""
    children = [element("title", tooltip)] if tooltip else []
    look: Attributes = {"stroke": paint, "stroke_width": 1.6, "stroke_opacity": 0.75}
    ends: Attributes = {"stroke_dasharray": "0.1 3.5", "stroke_linecap": "round", "fill": "none"}
    return element("path", *children, class_=class_, d=outline, **look, **ends)


def reference_line(
    x1: float, y1: float, x2: float, y2: float, tooltip: str = "", class_: str | None = "reference"
) -> Svg:
    """The dotted line that shows a reference level."""
    children = [element("title", tooltip)] if tooltip else []
    return element(
        "line",
        *children,
        class_=class_,
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        stroke="currentColor",
        stroke_width=2.2,
        stroke_dasharray="0.1 4",
        stroke_linecap="round",
    )


WIDTH, HEIGHT = 480.0, 230.0
_EDGE = 20.0


class Plot(NamedTuple):
    """The rectangle that holds the data, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def plot_area(
    width: float,
    height: float,
    above: float,
    y_labels: Sequence[str],
    y_title: str,
    room: float = 0,
) -> Plot:
    """The rectangle for data: so high, below what stands above, right of the tick labels."""
    side = max(map(text_width, y_labels), default=0)
    side = max(side, room) + 10
    top = above + (ROW + 13 if y_title else 10)
    return Plot(side, top, width - _EDGE, top + height)


def y_axis(plot: Plot, scale: Scale, ticks: Sequence[float], title: str, raised: float = 0) -> Svg:
    """Lines across the plot at the ticks, their labels, and the title above, written level."""
    parts = []
    for tick, text in zip(ticks, tick_labels(ticks), strict=True):
        at = scale(tick)
        ends = {"x1": plot.left, "x2": plot.right, "y1": at, "y2": at}
        parts.append(element("line", **ends, stroke_opacity=0.13))
        parts.append(label(plot.left - 8, at + FONT * 0.35, text, anchor="end", faint=True))
    if title:
        shown = shorten(title, plot.right)
        parts.append(label(0, plot.top - raised - 14, shown, faint=True, full=title))
    return element("g", *parts, stroke="currentColor")


def x_axis(plot: Plot, scale: Scale, title: str, width: float) -> tuple[Svg, float]:
    """The base line, the ticks that fit, the title below; and the height down to their end."""
    base = plot.bottom
    parts = [element("line", x1=plot.left, x2=plot.right, y1=base, y2=base, stroke_opacity=0.5)]
    for tick, text in fitting_ticks(scale):
        at = scale(tick)
        parts.append(element("line", x1=at, x2=at, y1=base, y2=base + 4, stroke_opacity=0.5))
        parts.append(centred(at, base + 19, text, width))
    drawn, height = x_title(plot, title, base + 19, width)
    return element("g", *parts, *drawn, stroke="currentColor"), height


def x_title(plot: Plot, title: str, above: float, width: float) -> tuple[list[Svg], float]:
    """The title in the middle under the line of text above it; and the height down to its end."""
    if not title:
        return [], above + 6
    middle = (plot.left + plot.right) / 2
    return [centred(middle, above + ROW, title, width)], above + ROW + 6


def centred(x: float, y: float, text: str, width: float, full: str = "") -> Svg:
    """A line of text around x, moved where it would leave the figure, cut if wider than that."""
    shown = shorten(text, width)
    half = text_width(shown) / 2
    inside = min(max(x, half), width - half)
    return label(inside, y, shown, anchor="middle", faint=True, full=full or text)


def fitting_ticks(scale: Scale) -> list[tuple[float, str]]:
    """The most ticks whose labels keep a distance, each with its label."""
    fitting: list[tuple[float, str]] = []
    for most in range(8, 0, -1):
        ticks = (log_ticks if scale.log else linear_ticks)(scale.low, scale.high, most)
        ticks = [tick for tick in ticks if not scale.whole or tick == round(tick)]
        labels = [readable(tick) for tick in ticks] if scale.log else tick_labels(ticks)
        fitting = list(zip(ticks, labels, strict=True))
        widest = max((text_width(text) for text in labels), default=0)
        steps = [scale(b) - scale(a) for a, b in pairwise(ticks)]
        if min(steps, default=widest + 20) >= widest + 12:
            break
    return fitting


def no_data(plot: Plot) -> Svg:
    """What an empty plot says."""
    middle = (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2
    return label(*middle, "no data", anchor="middle", faint=True)
