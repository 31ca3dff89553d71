"""What surrounds the marks of a figure: the plot's place, its axes, and the outer svg.

From top to bottom: the legend, the title of the y axis written level, the plot, the tick labels,
the title of the x axis.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from longtail.report.charts.chart import Chart
from longtail.report.charts.legend import ROW
from longtail.report.charts.scale import Scale, linear_ticks, log_ticks, readable, tick_labels
from longtail.report.charts.svg import FONT, Svg, element, label, shorten, text_width

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
    found: list[tuple[float, str]] = []
    for most in range(8, 0, -1):
        ticks = (log_ticks if scale.log else linear_ticks)(scale.low, scale.high, most)
        ticks = [tick for tick in ticks if not scale.whole or tick == round(tick)]
        labels = [readable(tick) for tick in ticks] if scale.log else tick_labels(ticks)
        found = list(zip(ticks, labels, strict=True))
        widest = max((text_width(text) for text in labels), default=0)
        steps = [scale(b) - scale(a) for a, b in pairwise(ticks)]
        if min(steps, default=widest + 20) >= widest + 12:
            break
    return found


def no_data(plot: Plot) -> Svg:
    """What an empty plot says."""
    middle = (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2
    return label(*middle, "no data", anchor="middle", faint=True)


def drawing(size: tuple[float, float], title: str, description: str, parts: Sequence[Svg]) -> Chart:
    """The parts in one svg that scales with the page and reads aloud as title and description."""
    width, height = size
    whole = element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size=FONT,
        style=f"max-width:{width * 1.25:g}px",
    )
    return Chart(whole)
