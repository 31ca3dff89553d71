"""Heat: a small labelled matrix, shaded by value and with the number in each cell that has room."""

import math
from collections.abc import Collection, Sequence

from longtail.report.charts import svg
from longtail.report.charts.chart import Chart, as_numbers, drawing
from longtail.report.charts.frame import ROW, WIDTH, Plot, centred, no_data
from longtail.report.charts.scale import decimals_for, fixed, readable, span_of
from longtail.report.charts.svg import Attributes, Svg

_CELL, _UPRIGHT, _LINE = 25.0, 110.0, 16.0
# The darkest shade still leaves the ink over it readable, in the light and in the dark.
_FAINTEST, _DARKEST = 0.04, 0.55
_SWATCHES = 5


def heat_chart(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Collection[float]],
    *,
    title: str,
    row_title: str = "",
    column_title: str = "",
    value_title: str = "",
    low: float | None = None,
    high: float | None = None,
    width: float = WIDTH,
) -> Chart:
    """A matrix with a name for each row and column; the larger a value, the darker its cell.

    Values have a collection a row with a number a column; NaN leaves the cell empty. The faintest
    shade is `low`, by default the smallest value, the darkest `high`, by default the largest.

    >>> chart = heat_chart(["rare", "common"], ["rare", "common"], [[3, 5], [0, 9]], title="Counts")
    >>> chart.count('class="mark"')
    4
    """
    cells = _check(rows, columns, values)
    finite = [value for row in cells for value in row if math.isfinite(value)]
    span = span_of(finite)
    low, high = span[0] if low is None else low, span[1] if high is None else high
    drawn, above = _key(value_title, (low, high), width) if finite else ([], 0.0)
    side = min(max(map(svg.text_width, (*rows, row_title)), default=0) + 10, width * 0.36)
    slot = (width - side - 2) / max(len(columns), 1)
    names, heading = _column_names(columns, side, slot, width)
    base = above + (ROW if column_title or row_title else 0) + heading
    plot = Plot(side, base, width - 2, base + max(len(rows), 1) * _CELL)
    for at, text, room in ((0.0, row_title, side - 10), (side, column_title, width - side)):
        if text:
            drawn.append(
                svg.label(at, above + svg.FONT, svg.shorten(text, room), faint=True, full=text)
            )
    drawn.append(svg.element("g", *names, transform=f"translate(0 {base:.2f})"))
    whole = all(value == int(value) for value in finite)
    decimals = 0 if whole else decimals_for(max(map(abs, finite), default=0.0), 3)
    for index, name in enumerate(rows):
        middle = base + (index + 0.5) * _CELL
        shown = svg.shorten(name, side - 10)
        drawn.append(svg.label(0, middle + svg.FONT * 0.35, shown, faint=True, full=name))
        for at, column in enumerate(columns):
            value = cells[index][at]
            if math.isfinite(value):
                share = (value - low) / (high - low) if high > low else 1.0
                shade = _opacity(min(max(share, 0.0), 1.0))
                tooltip = f"{name}, {column}: {readable(value)}"
                text = fixed(value, decimals)
                drawn.append(_cell(side + at * slot, middle, slot, shade, text, tooltip))
    if not finite:
        drawn.append(no_data(plot))
    return drawing((width, plot.bottom + 4), title, _description(rows, columns, cells), drawn)


def _opacity(share: float) -> float:
    return _FAINTEST + share * (_DARKEST - _FAINTEST)


def _check(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Collection[float]]
) -> list[tuple[float, ...]]:
    cells = [as_numbers(row, f"row {index} of values") for index, row in enumerate(values)]
    lengths = {len(row) for row in cells} or {len(columns)}
    if len(cells) != len(rows) or lengths != {len(columns)}:
        came = ", ".join(map(str, sorted(lengths)))
        raise ValueError(
            f"values must have a row for each of {len(rows)} rows and a number for each of "
            f"{len(columns)} columns in it; got {len(cells)} rows of {came}; use NaN where one "
            "is missing"
        )
    return cells


def _key(value_title: str, span: tuple[float, float], width: float) -> tuple[list[Svg], float]:
    """What the shades mean: from the lowest value to the highest."""
    ends = [readable(value, 3) for value in span]
    room = width - svg.text_width("".join(ends)) - 18 * _SWATCHES - 24
    name = svg.shorten(value_title, room)
    at = svg.text_width(name) + 10 if name else 0.0
    drawn = [svg.label(0, svg.FONT, name, faint=True, full=value_title)] if name else []
    drawn.append(svg.label(at, svg.FONT, ends[0], faint=True))
    at += svg.text_width(ends[0]) + 6
    drawn += [
        _shade(at + 18 * index, 3, 18, 12, _opacity(index / (_SWATCHES - 1)))
        for index in range(_SWATCHES)
    ]
    drawn.append(svg.label(at + 18 * _SWATCHES + 6, svg.FONT, ends[1], faint=True))
    return drawn, ROW + 5


def _column_names(
    columns: Sequence[str], side: float, slot: float, width: float
) -> tuple[list[Svg], float]:
    """The names above the columns, around a base line of zero, and the height they take."""
    lines = [svg.wrap(name, slot - 6) for name in columns]
    if all("…" not in "".join(some) for some in lines):
        most = max(map(len, lines), default=0)
        drawn = [
            centred(side + (index + 0.5) * slot, -7 - (len(some) - 1 - row) * _LINE, text, width)
            for index, some in enumerate(lines)
            for row, text in enumerate(some)
        ]
        return drawn, most * _LINE + 8
    if slot < svg.FONT:
        return [], 4.0  # no room in either direction: the tooltips have the names
    shown = [svg.shorten(name, _UPRIGHT) for name in columns]
    drawn = []
    for index, (name, text) in enumerate(zip(columns, shown, strict=True)):
        middle = side + (index + 0.5) * slot + svg.FONT * 0.35
        turned = f"translate({middle:.2f} -6) rotate(-90)"
        drawn.append(
            svg.element("g", svg.label(0, 0, text, faint=True, full=name), transform=turned)
        )
    return drawn, max(map(svg.text_width, shown)) + 10


def _cell(left: float, middle: float, slot: float, opacity: float, text: str, tooltip: str) -> Svg:
    box = left + 0.75, middle - _CELL / 2 + 0.75, max(slot - 1.5, 0.5), _CELL - 1.5
    shade = _shade(*box, opacity, tooltip, "mark")
    if svg.text_width(text) > slot - 4:
        return shade
    number = svg.label(left + slot / 2, middle + svg.FONT * 0.35, text, anchor="middle")
    return svg.element("g", shade, svg.element("g", number, pointer_events="none"))


def _shade(
    x: float,
    y: float,
    width: float,
    height: float,
    opacity: float,
    tooltip: str = "",
    class_: str | None = None,
) -> Svg:
    look: Attributes = {"x": x, "y": y, "width": width, "height": height, "fill": svg.color(0)}
    return svg.element("rect", svg.tip(tooltip), class_=class_, **look, fill_opacity=opacity)


def _description(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[float]]
) -> str:
    sentences = [f"{len(rows)} rows over {len(columns)} columns."]
    finite = [
        (value, row, column)
        for row, line in zip(rows, cells, strict=True)
        for column, value in zip(columns, line, strict=True)
        if math.isfinite(value)
    ]
    if finite:
        for word, (value, row, column) in (("Largest", max(finite)), ("Smallest", min(finite))):
            sentences.append(f"{word}: {readable(value)} at {row}, {column}.")
    return " ".join(sentences)
