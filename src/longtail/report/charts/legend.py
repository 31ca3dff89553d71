"""The legend of a figure and its reference line.

The legend has rows of its own above the plot, as many as it needs, so it never covers data.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longtail.report.charts.style import color, dash, marker, pale_fill
from longtail.report.charts.svg import FONT, Attributes, Svg, element, label, shorten, text_width

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
        place = f"translate({left + _SWATCH / 2:.1f} {row * ROW + ROW / 2:.1f})"
        text = label(_SWATCH / 2 + 6, FONT * 0.35, shown, full=name)
        drawn.append(element("g", swatch, text, transform=place))
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
