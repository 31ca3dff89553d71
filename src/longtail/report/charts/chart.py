"""A complete drawing: shown by notebooks, laid into pages, saved for papers.

In a page a drawing takes its colours from there, light or dark. On its own it must carry them:
every CSS variable becomes the light colour behind it and `currentColor` a dark ink, on white paper,
so that Inkscape, LaTeX and word processors, which know neither, show what a browser shows.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from html import unescape
from pathlib import Path

from longtail.core.files import written_whole
from longtail.report.charts.svg import FONT, Attributes, Svg, element, label, shorten

_INK, _WHITE = "#1c1e21", "#ffffff"
# Attributes only: in a text, such as a class name, quotes are escaped, so neither pattern matches.
_VARIABLE = re.compile(r'="var\(--lt-[\w-]+, ([^)"]*)\)"')
_CURRENT = '="currentColor"'
_HEAD = re.compile(r"(<svg [^>]*)>((?:<(title|desc)(?:/>|>[^<]*</\3>))*)")
_BOX = re.compile(r' viewBox="0 0 ([\d.]+) ([\d.]+)"')
_TEXT_TOOLTIP = re.compile(r"<title>[^<]*</title></text>")


class Chart(Svg):
    """A whole figure as SVG text; what every chart function returns."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return self.standalone()

    def standalone(self) -> str:
        """The drawing with its own size, colours and white paper, for wherever there is no page."""
        text = _VARIABLE.sub(r'="\1"', str(self)).replace(_CURRENT, f'="{_INK}"')
        return _HEAD.sub(_own_head, text, count=1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a .svg or, with `pip install longtail[plot]`, to a .pdf."""
        file = Path(path)
        writers: dict[str, Callable[[str], bytes]] = {".svg": str.encode, ".pdf": _pdf}
        if file.suffix.lower() not in writers:
            raise ValueError(
                f"a figure is saved as .svg or .pdf, got {file.name!r}; "
                "change how the name ends, and convert the SVG for any other format"
            )
        written = writers[file.suffix.lower()](self.standalone())
        with written_whole(file) as part:
            part.write_bytes(written)
        return file


def _own_head(head: re.Match[str]) -> str:
    box = _BOX.search(head[1])
    if box is None:
        raise ValueError("a chart must be a drawing with a viewBox; make it with `drawing`")
    size = f' width="{box[1]}" height="{box[2]}"'
    # The page's font and largest width mean nothing elsewhere.
    plain = re.sub(r' style="[^"]*"', "", head[1]).replace("system-ui, sans-serif", "sans-serif")
    return f'{plain}{size}>{head[2]}<rect{size} fill="{_WHITE}"/>'


def _pdf(text: str) -> bytes:
    try:
        # cairosvg raises OSError where the cairo library itself is missing.
        from cairosvg import svg2pdf
    except (ImportError, OSError) as error:
        raise ImportError(
            "saving a figure as .pdf needs cairosvg and the cairo library: "
            f"pip install longtail[plot], or save it as .svg ({error})"
        ) from error
    # A tooltip inside a text would be printed after it.
    return bytes(svg2pdf(bytestring=_TEXT_TOOLTIP.sub("</text>", text).encode()))


def drawing(size: tuple[float, float], title: str, description: str, parts: Sequence[Svg]) -> Chart:
    """The parts in one svg that scales with the page and reads aloud as title and description."""
    width, height = size
    font: Attributes = {"font_family": "system-ui, sans-serif", "font_size": FONT}
    head: Attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
    }
    style = f"max-width:{width * 1.25:g}px"
    spoken = element("title", title), element("desc", description)
    return Chart(element("svg", *spoken, *parts, **head, **font, style=style))


def as_numbers(values: Collection[float] | None, what: str) -> tuple[float, ...]:
    """The values as floats, none for None, or a TypeError that names them."""
    try:
        return tuple(float(value) for value in (() if values is None else values))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{what} must be a flat sequence of numbers, NaN where one is missing; {error}"
        ) from error


def as_columns(
    what: str,
    beside: Mapping[str, Collection[str] | None] | None = None,
    **parts: Collection[float] | None,
) -> dict[str, tuple[float, ...]]:
    """The parts as floats, all as long as each other and as the names beside them.

    Low and high come together or not at all.

    >>> as_columns("line 'CE'", x=[1, 2], y=[3, 4], low=None, high=None)
    {'x': (1.0, 2.0), 'y': (3.0, 4.0), 'low': (), 'high': ()}
    """
    missing = [name for name in ("low", "high") if name in parts and parts[name] is None]
    if len(missing) == 1:
        raise ValueError(f"{what} must have low and high together; {missing[0]} is missing: add it")
    every: dict[str, Collection[object] | None] = {**(beside or {}), **parts}
    check_lengths(what, **every)
    return {name: as_numbers(values, f"{name} of {what}") for name, values in parts.items()}


def check_lengths(what: str, **parts: Collection[object] | None) -> None:
    """Raise unless all parts that are given have one length."""
    lengths = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(lengths.values())) > 1:
        came = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(
            f"{what} must have sequences of one length; got {came}; "
            "give one value per point, NaN where it is missing"
        )


_PARTS = re.compile(
    r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>'
    r"(?:<title/>|<title>[^<]*</title>)(?:<desc/>|<desc>([^<]*)</desc>)(.*)</svg>",
    re.DOTALL,
)
_HEADING, _GAP = 24.0, 16.0


def panels(
    charts: Sequence[Chart], *, title: str, headings: Sequence[str] = (), columns: int = 1
) -> Chart:
    """Charts in rows of so many columns, as one chart, each under its heading if there are any."""
    if columns < 1:
        raise ValueError(f"columns must be at least 1, got {columns}")
    if headings:
        check_lengths("panels", charts=charts, headings=headings)
    drawn, described = [], []
    across = down = row = right = 0.0
    for number, chart in enumerate(charts):
        if number and number % columns == 0:
            across, down, row = 0.0, down + row + _GAP, 0.0
        match = _PARTS.fullmatch(chart)
        if match is None:
            raise TypeError("a panel must be a chart of longtail.report, unchanged")
        width, height = float(match[1]), float(match[2])
        description, inside = unescape(match[3] or ""), Svg(match[4])
        heading = headings[number] if headings else ""
        above = _HEADING if heading else 0.0
        written = label(0, FONT + 1, shorten(heading, width), full=heading)
        named = [element("g", written, font_weight="600")] if heading else []
        body = element("g", inside, transform=f"translate(0 {above:g})")
        drawn.append(element("g", *named, body, transform=f"translate({across:g} {down:g})"))
        described.append(f"{heading}: {description}" if heading else description)
        across, row = across + width + _GAP, max(row, height + above)
        right = max(right, across - _GAP)
    return drawing((right, down + row), title, " ".join(described), drawn)
