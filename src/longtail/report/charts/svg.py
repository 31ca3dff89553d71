"""The text of an SVG: elements with everything escaped, text measured without a font, and styles.

Series are told apart by colour, dash, marker and hatch, all chosen by the series' number. The
colours are Okabe and Ito's, safe for colour-blind readers, the pale ones darkened for white paper
and yellow left out. A page redefines the variables in the dark. Seven colours against five dashes
and five markers repeat together only after 35 series, so none relies on colour alone.
"""

import math
import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from unicodedata import east_asian_width

FONT = 13.0
_NARROW = frozenset("iljtfrI.,:;|'!()[] -·")
_WIDE = frozenset("mwMW@%—")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Attributes = dict[str, str | float | None]


class Svg(str):
    """SVG text made by this package: a page takes it as it is and escapes every other text."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(name: str, *children: str, **attributes: str | float | None) -> Svg:
    """One element; children that are no Svg are escaped, attributes that are None left out.

    `stroke_width` becomes stroke-width, `class_` becomes class.

    >>> element("text", "a < b", x=1.50, text_anchor="end", fill=None)
    '<text x="1.5" text-anchor="end">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Svg) else _text(child) for child in children)
    return Svg(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def tip(text: str) -> Svg:
    """What a browser shows while the pointer is on the element that this stands in."""
    return element("title", text) if text else Svg()


def coordinate(value: float) -> str:
    """A length in pixels, to a hundredth."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a text is in a wide sans-serif font, so that none turns out wider."""
    return size * sum(map(_character_width, text))


def shorten(text: str, room: float) -> str:
    """The text, cut with an ellipsis where it is wider than the room."""
    if text_width(text) <= room:
        return text
    kept = text
    while kept and text_width(kept + "…") > room:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrap(text: str, room: float) -> list[str]:
    """The text in at most three lines, broken at spaces, each no wider than the room.

    >>> wrap("post-hoc logit adjustment", 80)
    ['post-hoc', 'logit', 'adjustment']
    """
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and (text_width(joined) <= room or len(lines) == 3):
            lines[-1] = joined
        else:
            lines.append(word)
    return [shorten(line, room) for line in lines]


def label(
    x: float, y: float, text: str, anchor: str = "start", faint: bool = False, full: str = ""
) -> Svg:
    """A line of text; where it was shortened, the full text is its tooltip."""
    position: Attributes = {"x": x, "y": y, "text_anchor": None if anchor == "start" else anchor}
    ink: Attributes = {"fill": "currentColor", "fill_opacity": 0.75 if faint else None}
    return element(
        "text", text, tip("" if full == text else full), **position, **ink, stroke="none"
    )


def _text(value: str | float) -> str:
    return escape(_NOT_XML.sub("\ufffd", value)) if isinstance(value, str) else coordinate(value)


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _WIDE or east_asian_width(character) in "WF":
        return 1.0
    return 0.72 if character.isupper() else 0.62


COLORS = ("#0072b2", "#d55e00", "#009e73", "#b8609a", "#c58800", "#3f9fd8", "#6b6b6b")
PAPER = "var(--lt-paper, #fff)"
_DASHES = (None, "7 3", "9 3 2 3", "3.5 2.5", "14 4")
_HATCHES = (None, 45, -45, 0, 90)
_CORNERS = {
    1: [(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
    2: [(0.0, -1.15), (1.05, 0.75), (-1.05, 0.75)],
    3: [(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
}
_CROSS = math.sqrt(1.3)


def color(number: int) -> str:
    """The colour of a series, as a CSS variable with the light colour behind it."""
    index = number % len(COLORS)
    return f"var(--lt-{index + 1}, {COLORS[index]})"


def pale_fill(number: int) -> str:
    """The fill of pale marks: only discs are filled.

    Two pale fills on top of each other would make a third colour that no legend explains; an
    outline on a disc leaves both to be seen.
    """
    return color(number) if number % 5 == 0 else "none"


def dash(number: int) -> str | None:
    """The stroke-dasharray of a series; the first is solid."""
    return _DASHES[number % len(_DASHES)]


def marker(
    number: int,
    x: float,
    y: float,
    radius: float,
    tooltip: str = "",
    class_: str | None = "mark",
    hidden: bool = False,
) -> Svg:
    """A circle, square, triangle, diamond or cross in the colours of the group around it."""
    shape = f"M{_point(x, y)}{_shape(number, radius)}"
    look: Attributes = {"d": shape, "opacity": 0 if hidden else None}
    return element("path", tip(tooltip), class_=class_, **look)


def many_marks(number: int, points: Sequence[tuple[float, float]], radius: float) -> Svg:
    """The same shapes for thousands of points to a tenth of a pixel, one path without tooltips."""
    if number % 5 == 0:  # the round ends of a stroke without length are the lightest circle
        outline = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
        ends: Attributes = {"stroke_linecap": "round", "stroke_width": 2 * radius}
        return element("path", class_="marks", d=outline, **ends)
    shape = _shape(number, radius)
    outline = "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in points)
    return element("path", class_="marks", d=outline)


def hatch(number: int, identifier: str) -> tuple[str, Svg]:
    """The fill of a bar, and the pattern that must be in the drawing for it (empty if plain)."""
    angle = _HATCHES[number % len(_HATCHES)]
    if angle is None:
        return color(number), Svg()
    tile = (
        element("rect", width=6, height=6, fill=color(number)),
        element("line", x2=6, stroke=PAPER, stroke_width=2.4, stroke_opacity=0.4),
    )
    look: Attributes = {"patternUnits": "userSpaceOnUse", "patternTransform": f"rotate({angle})"}
    pattern = element("pattern", *tile, id=identifier, width=6, height=6, **look)
    return f"url(#{identifier})", element("defs", pattern)


def _shape(number: int, radius: float) -> str:
    """A disc, square, triangle, diamond or cross around the point where the path stands."""
    if number % 5 == 0:
        r, across = coordinate(radius), coordinate(2 * radius)
        return f"m-{r} 0a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0Z"
    if number % 5 == 4:
        arm = radius / _CROSS
        whole = _point(2 * arm, 2 * arm), _point(-2 * arm, 2 * arm)
        return f"m{_point(-arm, -arm)}l{whole[0]}m0 {coordinate(-2 * arm)}l{whole[1]}"
    corners = [(x * radius, y * radius) for x, y in _CORNERS[number % 5]]
    steps = (_point(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(corners))
    return f"m{_point(*corners[0])}l" + "l".join(steps) + "Z"


def _point(x: float, y: float) -> str:
    return f"{coordinate(x)} {coordinate(y)}"
