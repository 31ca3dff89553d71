"""The cells of a comparison as text, for the terminal, Markdown, LaTeX and the page alike."""

import math
from typing import NamedTuple

from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.report.comparison.columns import Metric
from longtail.report.comparison.compared import ComparedSet, Method
from longtail.stats import Estimate


class Cell(NamedTuple):
    """A number ready to print.

    Attributes:
        value: The mean.
        between: Its interval: ± half of it, both ends where they are not equally far, or empty.
        best: Whether it is the best of its column.
        tied: Whether it cannot be told apart from the best.
    """

    value: str
    between: str
    best: bool = False
    tied: bool = False


class Shown(NamedTuple):
    """A column of a table.

    Attributes:
        metric: What is in it.
        name: What it is called.
        is_as_trained: Whether it is of the scores as they are, and not under the target.
    """

    metric: Metric
    name: str
    is_as_trained: bool = False


def columns(table: ComparedSet) -> list[Shown]:
    """From left to right; `cells` has a cell for each.

    Where scores were moved, the metric that orders the methods comes twice: as trained first.
    """
    made = []
    for metric in table.metrics:
        name = metric.name
        if table.has_moved and metric is table.by:
            made.append(Shown(metric, f"{name}, {AS_TRAINED}", is_as_trained=True))
            is_told = metric.key == "accuracy_under_target"
            name = name if is_told else f"{name}, {UNDER_TARGET}"
        made.append(Shown(metric, name))
    return made


def cells(table: ComparedSet) -> list[list[Cell]]:
    """A row a method, a cell for each of `columns`."""
    return [
        [
            _as_trained(method, shown.metric)
            if shown.is_as_trained
            else _cell(table, method, shown.metric)
            for shown in columns(table)
        ]
        for method in table.methods
    ]


def heading(shown: Shown) -> str:
    """The name of a column, its unit, and which way is good."""
    unit = " %" if shown.metric.percent else ""
    return f"{shown.name}{unit} {'↑' if shown.metric.best == 'high' else '↓'}"


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


def interval(found: Estimate, metric: Metric) -> str:
    """± half of it, or both ends in brackets where it is not even; empty where there is none.

    >>> from longtail.report.comparison.columns import BY_KEY
    >>> interval(Estimate(0.5, 0.42, 0.58), BY_KEY["balanced_accuracy"])
    '± 8.0'
    >>> interval(Estimate(1.0, 0.342, 1.0), BY_KEY["balanced_accuracy"])
    '[34.2, 100.0]'
    """
    if found.reach is None:
        return ""
    if is_even(found, metric):
        return f"± {number(found.reach, metric)}"
    return f"[{number(found.low, metric)}, {number(found.high, metric)}]"


def is_even(found: Estimate, metric: Metric) -> bool:
    """Whether both ends lie equally far from the value, as far as digits are shown."""
    if found.value is None or found.low is None or found.high is None:
        return False
    apart = (found.value - found.low, found.high - found.value, found.reach)
    return len({number(each, metric) for each in apart}) == 1


def _as_trained(method: Method, metric: Metric) -> Cell:
    """Never marked: methods are compared under the target."""
    found = method.as_trained[metric.key]
    return Cell(number(found.value, metric), interval(found, metric))


def _cell(table: ComparedSet, method: Method, metric: Metric) -> Cell:
    found, verdict = method.estimates[metric.key], table.verdicts.get(metric.key)
    between = interval(found, metric)
    if len(table.methods) < 2:
        return Cell(number(found.value, metric), between)
    if verdict is None:  # not tested: the best value is bold, and nothing is said of the others
        values = [each.estimates[metric.key].value for each in table.methods]
        known = [metric.ahead(value) for value in values if value is not None]
        best = found.value is not None and metric.ahead(found.value) == max(known)
        return Cell(number(found.value, metric), between, best)
    is_best, tied = method.name == verdict.best, method.name in verdict.tied
    return Cell(number(found.value, metric), between, is_best, tied)
