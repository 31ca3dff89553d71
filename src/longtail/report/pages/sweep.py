"""A sweep in words, a table, a curve and a page."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from longtail.report.charts.lines import Line, line_chart
from longtail.report.names import ACCURACIES, GROUPS, HEADLINES, how_many, percent, with_interval
from longtail.report.page import Column, Figure, Footer, Page, Section, Table

if TYPE_CHECKING:
    from longtail.core.scores import Split
    from longtail.flows.sweep_result import SweepPoint, SweepResult

_PARTS: tuple[Split, ...] = ("validation", "test")
_OVERS = {
    frozenset[str](): "",
    frozenset({"seeds"}): " over seeds",
    frozenset({"samples"}): " over images",
    frozenset({"seeds", "samples"}): " over seeds, of a point with one seed over images",
}
_DECADE = 10  # values that are as far apart are drawn on a logarithmic axis


def sweep_page(result: SweepResult, footer: Footer) -> Page:
    """The page of `longtail sweep`."""
    heads, *rows = point_table(result)
    table = Table([Column(name) for name in heads], rows)
    section = Section("All points", table=table, figures=_curve(result), notes=notes(result))
    return Page(f"longtail sweep: {result.recipe}", headline(result), [section], footer)


def headline(result: SweepResult) -> str:
    """Which point the validation part chooses, and what it gives on the test part."""
    number = how_many(len(result.points), "point")
    chosen = result.chosen
    if chosen is None:
        return (
            f"{number}, and no validation part: nothing is chosen here, since a point that the "
            "test part chose would look better than it is. Set data.validation_share."
        )
    name, key = HEADLINES[result.accuracy], result.accuracy
    text = f"{number}. The validation part chooses {point_name(result, chosen)}."
    if "test" in chosen.metrics:
        text += f" {name} on the test part: {with_interval(chosen.metrics['test'][key])} %."
    if result.overlapping:
        others = ", ".join(point_name(result, point) for point in result.overlapping)
        text += (
            f" On the validation part its interval overlaps with that of {others}, which is no "
            "test: longtail compare tests the differences."
        )
    return text


def point_name(result: SweepResult, point: SweepPoint) -> str:
    """The values of a point, with their keys."""
    pairs = zip(result.keys, point.values, strict=True)
    return ", ".join(f"{key}={value}" for key, value in pairs) or result.recipe


def point_table(result: SweepResult) -> list[list[str]]:
    """The heads of the columns, then a row a point; in %."""
    accuracy = ACCURACIES[result.accuracy]
    parts = [part for part in _PARTS if any(part in point.metrics for point in result.points)]
    last = parts[-1] if parts else "test"
    heads = [*(result.keys or ("",)), *(f"{part} {accuracy}" for part in parts)]
    rows = [[*heads, *(f"{last} {group}" for group in GROUPS), "seeds"]]
    for point in result.points:
        measured = [result.measure(point, part, result.accuracy) for part in parts]
        rows.append(
            [
                *(point.values or (result.recipe,)),
                *map(with_interval, measured),
                *(percent(result.measure(point, last, group).value) for group in GROUPS),
                ", ".join(map(str, point.seeds)),
            ]
        )
    return rows


def notes(result: SweepResult) -> list[str]:
    """What the numbers are, and what is missing."""
    measured = [
        result.measure(point, part, result.accuracy) for point in result.points for part in _PARTS
    ]
    over = _OVERS[frozenset(each.over for each in measured if each.over is not None)]
    variants = sorted({point.variant for point in result.points})
    lines = [f"In %, {' or '.join(variants)}; in brackets 95 % intervals{over}."]
    if result.chosen is not None:
        lines.append(
            "Points are chosen by the validation part alone, and its number of the chosen one is "
            "too good for that reason; the number of the test part is not."
        )
    lines += [f"{name} failed: {error}" for name, error in result.failed]
    return lines


def _curve(result: SweepResult) -> list[Figure]:
    """The accuracy along the one key that varies, if its values are numbers."""
    if (axis := result.axis) is None:
        return []
    lines = []
    order = sorted(range(len(axis)), key=axis.__getitem__)
    for style, part in enumerate(_PARTS):
        measured = [result.measure(result.points[at], part, result.accuracy) for at in order]
        if all(each.value is None for each in measured):
            continue
        y, low, high = (
            [nan if (end := getattr(each, name)) is None else 100 * end for each in measured]
            for name in ("value", "low", "high")
        )
        x = [axis[at] for at in order]
        lines.append(Line(f"{part} part", x, y, low, high, mark="both", style=style))
    log_x = min(axis) > 0 and max(axis) >= _DECADE * min(axis)
    name, key = ACCURACIES[result.accuracy], result.keys[0]
    chart = line_chart(
        lines, title=f"{name} by {key}", x_title=key, y_title=f"{name} (%)", log_x=log_x
    )
    return [Figure(chart, f"{name.capitalize()} by {key}, with 95 % intervals.")]
