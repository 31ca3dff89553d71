"""The cells of a comparison as text, for the terminal, Markdown, LaTeX and the page alike."""

import math
from typing import NamedTuple

from longtail.report.comparison.columns import Metric
from longtail.report.comparison.compared import ComparedSet, Method


class Cell(NamedTuple):
    """A number ready to print.

    Attributes:
        value: The mean.
        reach: Half its interval, or empty.
        best: Whether it is the best of its column.
        tied: Whether it cannot be told apart from the best.
    """

    value: str
    reach: str
    best: bool = False
    tied: bool = False


def cells(table: ComparedSet) -> list[list[Cell]]:
    """A row a method, a cell a metric."""
    return [[_cell(table, method, metric) for metric in table.metrics] for method in table.methods]


def heading(metric: Metric) -> str:
    """The name of a column, its unit, and which way is good."""
    unit = " %" if metric.percent else ""
    return f"{metric.name}{unit} {'↑' if metric.best == 'high' else '↓'}"


def number(value: float | None, metric: Metric) -> str:
    """A value as it is shown; a dash where there is none.

    >>> from longtail.report.comparison.columns import BY_KEY
    >>> number(0.4481, BY_KEY["balanced_accuracy"]), number(None, BY_KEY["nll"])
    ('44.8', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{metric.factor * value:.{metric.digits}f}"
    return text.replace("-", "−").replace("inf", "∞")


def _cell(table: ComparedSet, method: Method, metric: Metric) -> Cell:
    found, verdict = method.estimates[metric.key], table.verdicts.get(metric.key)
    reach = "" if found.reach is None else number(found.reach, metric)
    if len(table.methods) < 2:
        return Cell(number(found.value, metric), reach)
    if verdict is None:  # not tested: the best value is bold, and nothing is said of the others
        values = [each.estimates[metric.key].value for each in table.methods]
        known = [metric.ahead(value) for value in values if value is not None]
        best = found.value is not None and metric.ahead(found.value) == max(known)
        return Cell(number(found.value, metric), reach, best)
    is_best, tied = method.name == verdict.best, method.name in verdict.tied
    return Cell(number(found.value, metric), reach, is_best, tied)
