"""The first screen: every headline metric before and after, with intervals."""

from __future__ import annotations

import math
from typing import NamedTuple

from longtail.metrics import Accumulator, Difference, Interval
from longtail.report.accuracies import GROUPS, shown_accuracies
from longtail.report.sections.verdict import has_too_few, is_above, is_below
from longtail.report.table import Column, Table


class Row(NamedTuple):
    """A metric as it is shown: its key, its name, whether a share, whether less of it is better."""

    key: str
    name: str
    is_share: bool = True
    less: bool = False


OTHERS = (
    *(Row(key, name) for key, name in GROUPS.items()),
    Row("worst_class", "worst class"),
    Row("ece", "calibration error (ECE)", less=True),
    Row("nll", "log-loss", is_share=False, less=True),
)
_FEW = 5  # of a class with fewer samples an interval knows little


def before_after(comparison: Difference, names: tuple[str, str] = ("before", "after")) -> Table:
    """The table of the first screen, with 95 % intervals."""
    rows = metric_rows(comparison)
    return Table(
        [Column("metric"), *(Column(name) for name in names), Column("change")],
        rows,
        caption=_caption(comparison.before),
    )


def alone(tally: Accumulator) -> Table:
    """The same where there is nothing to compare with."""
    found = tally.metrics()
    rows = [[row.name, _shown(found[row.key], row)] for row in _rows_of(tally, found)]
    return Table([Column("metric"), Column("value")], rows, _caption(tally))


def _caption(tally: Accumulator) -> str:
    said = ["In %, but for the log-loss; in brackets 95 % intervals."]
    if tally.groups:
        said.append(
            "Many-shot classes have more than 100 training samples, few-shot ones fewer than 20."
        )
    few = int(((tally.samples > 0) & (tally.samples < _FEW)).sum())
    if few:
        said.append(
            f"Classes with fewer than {_FEW} samples here: {few:,} of {len(tally.samples):,}; "
            "their share of the intervals is borrowed from the other classes."
        )
    return " ".join(said)


def metric_rows(comparison: Difference) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each metric that there is."""
    before, after = (tally.metrics() for tally in (comparison.before, comparison.after))
    gains, sure = comparison.gains(), not has_too_few(comparison)
    return [
        (
            row.name,
            _shown(before[row.key], row),
            _shown(after[row.key], row),
            _change(before[row.key], after[row.key], gains.get(row.key), row, sure),
        )
        for row in _rows_of(comparison.before, before)
    ]


def _rows_of(tally: Accumulator, found: dict[str, Interval]) -> list[Row]:
    accuracies = (Row(key, name) for key, name in shown_accuracies(tally).items())
    rows = (*accuracies, *OTHERS)
    return [row for row in rows if row.key in found and found[row.key].value is not None]


def _shown(measured: Interval, row: Row) -> str:
    if measured.value is None:
        return "none"
    text = _number(measured.value, row)
    if None in (measured.low, measured.high) or not math.isfinite(measured.value):
        return text
    low, high = (_number(end, row) for end in (measured.low, measured.high))
    return f"{text} [{low},\u00a0{high}]"


def _number(value: float | None, row: Row, sign: str = "") -> str:
    """Shares in percent; infinite is the log-loss of a sample whose class was ruled out."""
    assert value is not None
    text = f"{100 * value:{sign}.1f}" if row.is_share else f"{value:{sign}.3f}"
    return text.replace("-", "−").replace("inf", "∞")


def _overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals have a number in common; unknown ones have not."""
    if None in (one.low, one.high, other.low, other.high):
        return False
    return one.low <= other.high and other.low <= one.high  # type: ignore[operator]


def _change(
    before: Interval, after: Interval, gain: Interval | None, row: Row, enough: bool
) -> str:
    """The difference with its paired interval where there is one, and what it means."""
    if before.value is None or after.value is None or before.value == after.value:
        return "none"
    change = after.value - before.value
    text = _number(change, row, "+")
    if text.strip("+−0.") == "":
        return "none"
    word = "better" if (change < 0) == row.less else "worse"
    if gain is None or gain.low is None or gain.high is None:
        sure = enough and not _overlap(before, after)
        return f"{text} {word if sure else 'may be chance'}"
    # The gain is of an accuracy; of an error it is the other way round.
    ends = (-gain.high, -gain.low) if row.less else (gain.low, gain.high)
    between = ", ".join(_number(end, row, "+") for end in ends)  # it may break on a phone
    sure = enough and (is_above(gain) or is_below(gain))
    return f"{text} [{between}] {word if sure else 'may be chance'}"
