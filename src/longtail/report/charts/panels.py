"""Panels: several charts as one drawing, each under its heading."""

import re
from collections.abc import Sequence
from html import unescape

from longtail.report.charts.chart import Chart
from longtail.report.charts.checks import check_lengths
from longtail.report.charts.frame import drawing
from longtail.report.charts.svg import FONT, Svg, element, label, shorten

_PARTS = re.compile(
    r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>'
    r"(?:<title/>|<title>[^<]*</title>)(?:<desc/>|<desc>([^<]*)</desc>)(.*)</svg>",
    re.DOTALL,
)
_HEADING, _GAP = 24.0, 16.0


def panels(
    charts: Sequence[Chart], *, title: str, headings: Sequence[str] = (), columns: int = 1
) -> Chart:
    """Charts in rows of so many columns, as one chart.

    Args:
        charts: What is drawn, row by row.
        title: What a screen reader says first; not drawn.
        headings: What stands above each chart, if anything does.
        columns: How many stand beside each other.

    >>> from longtail.report import Line, line_chart
    >>> one = line_chart([Line("a", [0, 1], [1, 2])], title="one")
    >>> both = panels([one, one], title="two groups", headings=["many", "few"])
    >>> both.count('class="mark"'), both.count("<svg ")
    (4, 1)
    """
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    if headings:
        check_lengths("panels", charts=charts, headings=headings)
    drawn, said, across, down, row = [], [], 0.0, 0.0, 0.0
    right = 0.0
    for number, chart in enumerate(charts):
        if number and number % columns == 0:
            across, down, row = 0.0, down + row + _GAP, 0.0
        width, height, description, inside = _parts(chart)
        heading = headings[number] if headings else ""
        above = _HEADING if heading else 0.0
        named = [_heading(heading, width)] if heading else []
        body = element("g", inside, transform=f"translate(0 {above:g})")
        drawn.append(element("g", *named, body, transform=f"translate({across:g} {down:g})"))
        said.append(f"{heading}: {description}" if heading else description)
        across, row = across + width + _GAP, max(row, height + above)
        right = max(right, across - _GAP)
    return drawing((right, down + row), title, " ".join(said), drawn)


def _parts(chart: Chart) -> tuple[float, float, str, Svg]:
    """Width, height, description, and what is drawn."""
    found = _PARTS.fullmatch(chart)
    if found is None:
        raise TypeError("a panel must be a chart of longtail.report, unchanged")
    return float(found[1]), float(found[2]), unescape(found[3] or ""), Svg(found[4])


def _heading(text: str, width: float) -> Svg:
    written = label(0, FONT + 1, shorten(text, width), full=text)
    return element("g", written, font_weight="600")
