"""A plot whose marks the page moves: the script is told where its values lie in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from longtail.report.charts.chart import Chart, drawing
from longtail.report.charts.frame import Key, Plot, legend, line_key, plot_area, x_axis, y_axis
from longtail.report.charts.scale import Scale, covering_ticks, linear_ticks, span_of, tick_labels
from longtail.report.charts.svg import Svg, color, coordinate, dash, element

WHOLE = (0.0, 100.0)  # percent
_HEIGHT = 220.0


class Curve(NamedTuple):
    """A line over x; NaN leaves a gap."""

    name: str
    y: Sequence[float]


class Stage(NamedTuple):
    """An empty plot.

    Attributes:
        plot: Where data go.
        x: From values to pixels.
        y: The same, upwards.
        parts: Axes and legend.
        size: Of the figure.
    """

    plot: Plot
    x: Scale
    y: Scale
    parts: list[Svg]
    size: tuple[float, float]

    @property
    def plane(self) -> dict[str, float]:
        """What the script needs to place a mark."""
        return {
            "x0": self.x.low,
            "x1": self.x.high,
            "y0": self.y.low,
            "y1": self.y.high,
            "left": round(self.plot.left, 2),
            "right": round(self.plot.right, 2),
            "top": round(self.plot.top, 2),
            "bottom": round(self.plot.bottom, 2),
        }


def stage(
    names: Sequence[str],
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    x_title: str,
    y_title: str,
    width: float,
    dots: bool = False,
) -> Stage:
    """Axes and a legend of the series to come."""
    make = _dot_key if dots else line_key
    keys = [make(name, number) for number, name in enumerate(names)]
    drawn, above = legend(keys, width)
    ticks = linear_ticks(*y_span)
    plot = plot_area(width, _HEIGHT, above, tick_labels(ticks), y_title)
    x = Scale(*x_span, plot.left, plot.right, whole=dots)
    y = Scale(*y_span, plot.bottom, plot.top)
    axis, total = x_axis(plot, x, x_title, width)
    return Stage(plot, x, y, [*drawn, axis, y_axis(plot, y, ticks, y_title)], (width, total))


def _dot_key(name: str, number: int) -> Key:
    """The legend entry of a series whose points are all drawn as dots."""
    return Key(name, element("circle", r=3.5, fill=color(number)))


def curves(
    x: Sequence[float],
    lines: Sequence[Curve],
    *,
    title: str,
    x_title: str,
    y_title: str,
    y_span: tuple[float, float] | None = None,
    width: float = 480.0,
) -> tuple[Chart, dict[str, float]]:
    """Lines over x with a cursor that the page moves, and the plane for it.

    The y axis covers the lines and goes no further than `y_span`; without one it starts at zero.
    """
    levels = [v for line in lines for v in line.y]
    ticks = covering_ticks(*span_of(levels if y_span else [0.0, *levels]))
    low, high = y_span or (ticks[0], ticks[-1])
    y_span = max(ticks[0], low), min(ticks[-1], high)
    names = [line.name for line in lines]
    set_up = stage(names, (x[0], x[-1]), y_span, x_title, y_title, width)
    drawn = [
        element(
            "path",
            class_="line",
            d=_path([set_up.x(v) for v in x], [set_up.y(v) for v in line.y]),
            fill="none",
            stroke=color(number),
            stroke_width=1.8,
            stroke_dasharray=dash(number),
        )
        for number, line in enumerate(lines)
    ]
    plot = set_up.plot
    cursor = element(
        "line", class_="cursor", x1=-99, x2=-99, y1=plot.top, y2=plot.bottom, stroke="currentColor"
    )
    said = f"{', '.join(names)} over {x_title}."
    return drawing(set_up.size, title, said, [*set_up.parts, *drawn, cursor]), set_up.plane


def moving_dots(
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    title: str,
    x_title: str,
    y_title: str,
    width: float = 960.0,
) -> tuple[Chart, dict[str, float]]:
    """A dot for each class, in percent; the page redraws the last series."""
    most = max(len(values) for _, values in series)
    names = [name for name, _ in series]
    set_up = stage(names, (0.0, most + 1.0), WHOLE, x_title, y_title, width, dots=True)
    drawn = [
        element(
            "path",
            class_="dots",
            d=dots_path([set_up.x(k + 1.0) for k in range(len(values))], map(set_up.y, values)),
            stroke=color(number),
            stroke_width=6 if number else 4.5,
            stroke_linecap="round",
            stroke_opacity=0.5 if number == 0 and len(series) > 1 else None,
            fill="none",
        )
        for number, (_, values) in enumerate(series)
    ]
    said = f"{most} classes; the table below has the numbers."
    return drawing(set_up.size, title, said, [*set_up.parts, *drawn]), set_up.plane


def dots_path(x: Iterable[float], y: Iterable[float]) -> str:
    """Points as strokes without length, which a round cap makes dots; NaN is left out."""
    places = zip(x, y, strict=True)
    return "".join(f"M{coordinate(a)} {coordinate(b)}h0" for a, b in places if not math.isnan(b))


def _path(x: Sequence[float], y: Sequence[float]) -> str:
    pieces, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        if math.isnan(b):
            pen = "M"
            continue
        pieces.append(f"{pen}{coordinate(a)} {coordinate(b)}")
        pen = "L"
    return "".join(pieces)
