"""The plane: points of a few classes and straight lines that separate them."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from longtail.report.charts.chart import Chart, as_columns, drawing
from longtail.report.charts.frame import WIDTH, Axis, Key, frame, line_key, no_data, plot_area
from longtail.report.charts.scale import linear_ticks, readable, span_of, tick_labels
from longtail.report.charts.svg import Attributes, color, dash, element, many_marks, marker, tip

_Pair: TypeAlias = tuple[float, float]
_HEIGHT = 340.0
# Points are drawn in shades of ink and by shape, so that colour is left to the separators.
_SHADES = (0.95, 0.38, 0.7, 0.5)
_TOOLTIPS = 700  # with more points than this a tooltip for each would be most of the file


@dataclass(frozen=True)
class Points:
    """The points of one class; one with NaN is left out."""

    name: str
    x: Collection[float]
    y: Collection[float]


@dataclass(frozen=True)
class Separator:
    """The line a·x + b·y + c = 0."""

    name: str
    a: float
    b: float
    c: float
    style: int | None = None  # of the colour and dash; by default the place in the list


def plane_chart(
    points: Sequence[Points],
    separators: Sequence[Separator] = (),
    *,
    title: str,
    x_title: str = "",
    y_title: str = "",
    colored: bool = False,
    axes: bool = True,
    width: float = WIDTH,
    height: float = _HEIGHT,
) -> Chart:
    """Classes in the plane and the lines between them, a unit being as long in x as in y.

    Up to 700 points have tooltips. Colour is left to the separators unless classes are `colored`;
    without `axes` there are no numbers, as for t-SNE, of which none means anything.

    >>> classes = [Points("rare", [1, 2], [1, 2]), Points("frequent", [-1], [-2])]
    >>> svg = plane_chart(classes, [Separator("Bayes", 1, 1, 0)], title="Two classes")
    >>> svg.count('class="mark"'), svg.count('class="separator"')
    (3, 1)
    """
    clouds = [(each.name, _pairs(each)) for each in points]
    every = [pair for _, pairs in clouds for pair in pairs]
    x_span, y_span = _equal_spans(every, width, height)
    look = _colored if colored else _shaded
    keys = [
        Key(name, element("g", marker(number, 0, 0, 2.8, class_=None), **look(number)))
        for number, (name, _) in enumerate(clouds)
    ]
    cuts = []
    for number, each in enumerate(separators):
        ends, style = _ends(each, x_span, y_span), number if each.style is None else each.style
        keys.append(line_key(each.name + ("" if ends else " (outside the frame)"), style))
        cuts.append((each.name, ends, style))
    across, up = Axis(*x_span, x_title), Axis(*y_span, y_title)
    drawn, plot, x, y, size = frame(keys, across, up, width, height, bare=not axes)
    light = len(every) > _TOOLTIPS
    # The largest class first, so that the rare ones stay visible on top of it.
    for number, (name, pairs) in sorted(enumerate(clouds), key=lambda at: -len(at[1][1])):
        dots = [(x(a), y(b)) for a, b in pairs]
        if light:
            drawn.append(element("g", many_marks(number, dots, 2.2), **look(number, light)))
            continue
        tips = [name if colored else f"{name}: {readable(a)}, {readable(b)}" for a, b in pairs]
        shapes = [marker(number, *at, 2.8, text) for at, text in zip(dots, tips, strict=True)]
        drawn.append(element("g", *shapes, **look(number), pointer_events="all"))
    for name, ends, style in cuts:
        if ends:
            (x1, y1), (x2, y2) = ((x(a), y(b)) for a, b in ends)
            from_to: Attributes = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": color(style)}
            line: Attributes = {"stroke_dasharray": dash(style), "stroke_width": 2.2}
            drawn.append(element("line", tip(name), class_="separator", **from_to, **line))
    if not every:
        drawn.append(no_data(plot))
    sentences = [f"{name}: {len(pairs)} points." for name, pairs in clouds]
    for item in separators:
        a, b, c = map(readable, (item.a, item.b, item.c))
        sentences.append(f"Line {item.name}: {a} x + {b} y + {c} = 0.")
    return drawing(size, title, " ".join(sentences), drawn)


def _pairs(points: Points) -> list[_Pair]:
    xs, ys = as_columns(f"points {points.name!r}", x=points.x, y=points.y).values()
    return [pair for pair in zip(xs, ys, strict=True) if all(map(math.isfinite, pair))]


def _equal_spans(pairs: Sequence[_Pair], width: float, height: float) -> tuple[_Pair, _Pair]:
    """Spans around all points in which a unit has as many pixels in x as in y."""
    spans = across, up = [span_of([pair[axis] for pair in pairs], pad=0.04) for axis in (0, 1)]
    # Labels decide how wide the plot is, that decides the spans, those decide the labels: twice.
    for _ in range(2):
        plot = plot_area(width, height, 0, tick_labels(linear_ticks(*spans[1])), "")
        pixels = plot.right - plot.left
        unit = max((across[1] - across[0]) / pixels, (up[1] - up[0]) / height)
        spans = [_around(across, unit * pixels), _around(up, unit * height)]
    return spans[0], spans[1]


def _around(span: _Pair, length: float) -> _Pair:
    middle = (span[0] + span[1]) / 2
    return middle - length / 2, middle + length / 2


def _ends(separator: Separator, x_span: _Pair, y_span: _Pair) -> list[_Pair]:
    """Walk along the line from its point nearest to the origin, and keep what is in both spans."""
    a, b, c = separator.a, separator.b, separator.c
    norm = math.hypot(a, b)
    if not (0 < norm < math.inf and math.isfinite(c)):
        raise ValueError(
            f"separator {separator.name!r} must have finite a, b, c and a or b other than zero; "
            f"got a={a:g}, b={b:g}, c={c:g}; leave it out if there is no such line"
        )
    a, b, c = a / norm, b / norm, c / norm
    first, last = -math.inf, math.inf
    for start, along, (low, high) in ((-c * a, -b, x_span), (-c * b, a, y_span)):
        if along:
            near, far = sorted(((low - start) / along, (high - start) / along))
            first, last = max(first, near), min(last, far)
        elif not low <= start <= high:
            first, last = math.inf, -math.inf
    return [(-c * a - b * t, -c * b + a * t) for t in (first, last)] if first < last else []


def _shaded(number: int, light: bool = False) -> Attributes:
    shade = _SHADES[number % len(_SHADES)]
    hollow = number % 2 == 0 and not light
    fill = "none" if hollow else "currentColor"
    # What has no fill of its own, a light circle or a cross, is all stroke.
    stroke = None if light else 1.4 if hollow else 0
    return {"fill": fill, "stroke": "currentColor", "stroke_width": stroke, "opacity": shade}


def _colored(number: int, light: bool = False) -> Attributes:
    paint = color(number)
    return {"fill": paint, "stroke": paint, "stroke_width": 1.1, "opacity": 0.8}
