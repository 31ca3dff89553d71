"""The report page: one HTML file with everything inside, made from frozen values.

Jinja escapes every text. What passes unescaped is what carries the type `Svg`, which only the
figures of this package produce, and the one script of the explorers. The page lets the browser run
nothing but that script, which it names by its hash, and load nothing from anywhere.
"""

import base64
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from longtail.core.files import written_whole
from longtail.plain_text import plain_text
from longtail.report.charts.scale import fixed
from longtail.report.charts.svg import Svg
from longtail.report.explorers import Explorer

_SCRIPT = files("longtail.report").joinpath("templates/explorers.js")


@dataclass(frozen=True)
class Figure:
    """A figure and what stands under it; a wide one takes the whole width of the page."""

    svg: Svg
    caption: str
    wide: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.svg, Svg):
            raise TypeError(
                f"svg must come from a chart of longtail.report; got {type(self.svg).__name__}, "
                "which could carry foreign markup: pass the chart's result unchanged"
            )


class Printed(NamedTuple):
    """A cell as it is printed."""

    text: str
    right: bool = True  # whether it is aligned right
    best: bool = False
    mark: str = ""  # that the caption explains


Cell = str | float | tuple[float, float] | Printed | None  # a tuple is a mean and its spread


@dataclass(frozen=True)
class Column:
    """A column of a table: right-aligned if any of its cells is a number, else left-aligned."""

    name: str
    unit: str = ""  # stands beside the name, such as "%"
    digits: int = 2
    best: Literal["low", "high"] | None = None  # which number is printed bold


@dataclass(frozen=True)
class Table:
    """Rows under columns, and a caption above them."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]  # None where there is none
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, in this order: text, table, explorer, figures, notes."""

    heading: str
    paragraphs: Sequence[str] = ()
    table: Table | None = None
    figures: Sequence[Figure] = ()
    notes: Sequence[str] = ()
    explorer: Explorer | None = None


@dataclass(frozen=True)
class Footer:
    """Where the page comes from. The date is passed in: the same values give the same page."""

    version: str
    date: str
    command: str


@dataclass(frozen=True)
class Page:
    """Everything a report says."""

    title: str
    summary: str  # what was done, on what, and what came of it
    sections: Sequence[Section]  # what stands under the first screen
    footer: Footer
    lead: Table | None = None  # the one table of the first screen
    next_step: str = ""  # what the reader should do now, in one plain sentence or two
    warning: str = ""  # why not to trust any of it, which comes before all else


def render_page(page: Page) -> str:
    """The page as one HTML text that asks the network for nothing.

    >>> footer = Footer(version="0.1.0", date="2025-06-01", command="longtail demo")
    >>> html = render_page(Page("Demo", "All is well & good.", [Section("Result")], footer))
    >>> "<h1>Demo</h1>" in html, "well &amp; good" in html
    (True, True)
    """
    moves = any(section.explorer for section in page.sections)
    script = _SCRIPT.read_text(encoding="utf-8") if moves else ""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    shown = {"page": page, "laid_out": laid_out, "script": Markup(script)}
    template = _environment().get_template("page.html.j2")
    html = template.render(shown, script_hash=Markup(f"sha256-{digest}"))
    return plain_text(html.lstrip())


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Render the page to a file in a folder that exists, whole or not at all."""
    html = render_page(page).encode()
    with written_whole(path) as part:
        part.write_bytes(html)
    return Path(path)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("longtail.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def laid_out(table: Table) -> list[list[Printed]]:
    """The cells row by row, as they are printed.

    Cells that print alike are equally good, so a tie is bold twice. Text never competes: a row to
    compare with, such as the Bayes error, gives its numbers as text.

    >>> error = Column("error", unit="%", best="low")
    >>> rows = [["CE", (17.118, 0.2)], ["LA", (7.934, 0.1)]]
    >>> [[cell.text for cell in row] for row in laid_out(Table([Column("method"), error], rows))]
    [['CE', '17.12 ± 0.20'], ['LA', '7.93 ± 0.10']]
    """
    for number, row in enumerate(table.rows):
        if len(row) != len(table.columns):
            raise ValueError(
                f"row {number} must have a cell for each of the {len(table.columns)} columns; "
                f"got {len(row)}; put None where there is nothing to say"
            )
    by_column = [[row[i] for row in table.rows] for i in range(len(table.columns))]
    best = [_best(cells, column) for cells, column in zip(by_column, table.columns, strict=True)]
    right = [not all(isinstance(cell, str | None) for cell in cells) for cells in by_column]
    return [
        [_laid(*cell) for cell in zip(row, table.columns, best, right, strict=True)]
        for row in table.rows
    ]


def _laid(cell: Cell, column: Column, best: str | None, right: bool) -> Printed:
    if isinstance(cell, Printed):
        return cell
    if isinstance(cell, str):
        return Printed(cell, right)
    value = fixed(_value(cell), column.digits)
    spread = f" ± {fixed(cell[1], column.digits)}" if isinstance(cell, tuple) else ""
    return Printed(value + spread, right, value == best)


def _value(cell: Cell) -> float:
    """The number that cells are compared by; NaN where there is none."""
    if cell is None or isinstance(cell, str | Printed):
        return math.nan
    return float(cell[0] if isinstance(cell, tuple) else cell)


def _best(cells: Sequence[Cell], column: Column) -> str | None:
    values = [value for value in map(_value, cells) if not math.isnan(value)]
    if column.best is None or not values:
        return None
    return fixed(min(values) if column.best == "low" else max(values), column.digits)
