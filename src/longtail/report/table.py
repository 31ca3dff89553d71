"""Tables of a report: numbers as text, and which of them is the best of its column."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Marked:
    """A number, alone or with its spread or interval, and a mark that the caption explains."""

    cell: float | tuple[float, ...]
    mark: str


# A tuple is a mean and its spread, or a value and the two ends of its interval.
Cell = str | float | tuple[float, ...] | Marked | None


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


class Laid(NamedTuple):
    """A cell ready to print."""

    text: str
    right: bool
    best: bool
    mark: str = ""


def laid_out(table: Table) -> list[list[Laid]]:
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


def _laid(cell: Cell, column: Column, best: str | None, right: bool) -> Laid:
    mark, cell = (cell.mark, cell.cell) if isinstance(cell, Marked) else ("", cell)
    competes = best is not None and not isinstance(cell, str)
    is_best = competes and _number(_value(cell), column.digits) == best
    return Laid(_text(cell, column.digits), right, is_best, mark)


def _value(cell: Cell) -> float:
    """The number that cells are compared by; NaN where there is none."""
    if isinstance(cell, Marked):
        return _value(cell.cell)
    if isinstance(cell, tuple):
        return float(cell[0])
    return math.nan if cell is None or isinstance(cell, str) else float(cell)


def _best(cells: Sequence[Cell], column: Column) -> str | None:
    values = [value for value in map(_value, cells) if not math.isnan(value)]
    if column.best is None or not values:
        return None
    return _number(min(values) if column.best == "low" else max(values), column.digits)


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:,.{digits}f}".replace("-", "−").replace("inf", "∞")


def _text(cell: Cell, digits: int) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, tuple):
        value, *others = (_number(float(part), digits) for part in cell)
        return f"{value} ± {others[0]}" if len(others) == 1 else f"{value} [{', '.join(others)}]"
    return _number(_value(cell), digits)
