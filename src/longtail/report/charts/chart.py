"""A complete drawing: shown by notebooks, laid into pages, saved for papers.

In a page a drawing takes its colours from there, light or dark. On its own it must carry them:
every CSS variable becomes the light colour behind it and `currentColor` a dark ink, on white paper,
so that Inkscape, LaTeX and word processors, which know neither, show what a browser shows.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from longtail.core.files import written_whole
from longtail.report.charts.svg import Svg

_INK, _WHITE = "#1c1e21", "#ffffff"
# Attributes only: in a text, such as a class name, quotes are escaped, so neither pattern matches.
_VARIABLE = re.compile(r'="var\(--lt-[\w-]+, ([^)"]*)\)"')
_CURRENT = '="currentColor"'
_HEAD = re.compile(r"(<svg [^>]*)>((?:<(title|desc)(?:/>|>[^<]*</\3>))*)")
_BOX = re.compile(r' viewBox="0 0 ([\d.]+) ([\d.]+)"')
_TEXT_TOOLTIP = re.compile(r"<title>[^<]*</title></text>")


class Chart(Svg):
    """A whole figure as SVG text; what every chart function returns.

    >>> from longtail.report import Line, line_chart
    >>> chart = line_chart([Line("a", [0, 1], [1, 2])], title="Two points")
    >>> chart.startswith("<svg "), "var(" in chart, "var(" in chart.standalone()
    (True, True, False)
    """

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return self.standalone()

    def standalone(self) -> str:
        """The drawing with its own size, colours and white paper, for wherever there is no page."""
        text = _VARIABLE.sub(r'="\1"', str(self)).replace(_CURRENT, f'="{_INK}"')
        return _HEAD.sub(_own_head, text, count=1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing to a file, whole or not at all.

        Args:
            path: Ends in .svg, or in .pdf, which needs `pip install longtail[plot]`.

        >>> import tempfile
        >>> from longtail.report import Line, line_chart
        >>> chart = line_chart([Line("a", [0, 1], [1, 2])], title="Two points")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     chart.save(Path(folder) / "points.svg").name
        'points.svg'
        """
        place = Path(path)
        writers: dict[str, Callable[[str], bytes]] = {".svg": str.encode, ".pdf": _pdf}
        if place.suffix.lower() not in writers:
            raise ValueError(
                f"a figure is saved as .svg or .pdf, got {place.name!r}; "
                "change how the name ends, and convert the SVG for any other format"
            )
        written = writers[place.suffix.lower()](self.standalone())
        with written_whole(place) as part:
            part.write_bytes(written)
        return place


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
