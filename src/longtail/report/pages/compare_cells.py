"""The tables of a comparison: cells as text for all outputs, and the numbers as JSON."""

import math
from dataclasses import asdict
from typing import Any, NamedTuple

from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import Metric
from longtail.flows.compare_sets import ComparedSet, Estimate, Method, Ranks
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.report.pages import compare_text as text


class Cell(NamedTuple):
    """A number ready to print."""

    value: str  # the mean
    between: str  # its interval: ± half of it, both ends where they are not equally far, or empty
    best: bool = False  # whether it is the best of its column
    tied: bool = False  # whether it cannot be told apart from the best


class Shown(NamedTuple):
    """A column of a table."""

    metric: Metric  # what is in it
    name: str  # what it is called
    is_as_trained: bool = False  # whether it is of the scores as they are, and not under the target

    @property
    def heading(self) -> str:
        """The name, the unit, and which way is good."""
        unit = " %" if self.metric.percent else ""
        return f"{self.name}{unit} {'↑' if self.metric.best == 'high' else '↓'}"


def columns(table: ComparedSet) -> list[Shown]:
    """From left to right; `cells` has a cell for each.

    Where scores were moved, the metric that orders the methods comes twice: as trained first.
    """
    shown = []
    for metric in table.metrics:
        name = metric.name
        if table.has_moved and metric is table.by:
            shown.append(Shown(metric, f"{name}, {AS_TRAINED}", is_as_trained=True))
            is_told = metric.key == "accuracy_under_target"
            name = name if is_told else f"{name}, {UNDER_TARGET}"
        shown.append(Shown(metric, name))
    return shown


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


def number(value: float | None, metric: Metric) -> str:
    """A value as it is shown; a dash where there is none.

    >>> from longtail.flows.compare_runs import BY_KEY
    >>> number(0.4481, BY_KEY["balanced_accuracy"]), number(None, BY_KEY["nll"])
    ('44.8', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    shown = f"{metric.factor * value:.{metric.digits}f}"
    return shown.replace("-", "−").replace("inf", "∞")


def interval(estimated: Estimate, metric: Metric) -> str:
    """± half of it, or both ends in brackets where it is not even; empty where there is none.

    >>> from longtail.flows.compare_runs import BY_KEY
    >>> interval(Estimate(0.5, 0.42, 0.58), BY_KEY["balanced_accuracy"])
    '± 8.0'
    >>> interval(Estimate(1.0, 0.342, 1.0), BY_KEY["balanced_accuracy"])
    '[34.2, 100.0]'
    """
    if estimated.reach is None:
        return ""
    if is_even(estimated, metric):
        return f"± {number(estimated.reach, metric)}"
    return f"[{number(estimated.low, metric)}, {number(estimated.high, metric)}]"


def is_even(estimated: Estimate, metric: Metric) -> bool:
    """Whether both ends lie equally far from the value, as far as digits are shown."""
    value, low, high = estimated.value, estimated.low, estimated.high
    if value is None or low is None or high is None:
        return False
    return len({number(far, metric) for far in (value - low, high - value, estimated.reach)}) == 1


def _as_trained(method: Method, metric: Metric) -> Cell:
    """Never marked: methods are compared under the target."""
    estimated = method.as_trained[metric.key]
    return Cell(number(estimated.value, metric), interval(estimated, metric))


def _cell(table: ComparedSet, method: Method, metric: Metric) -> Cell:
    estimated, verdict = method.estimates[metric.key], table.verdicts.get(metric.key)
    plain = Cell(number(estimated.value, metric), interval(estimated, metric))
    if len(table.methods) < 2:
        return plain
    if verdict is None:  # not tested: the best value is bold, and nothing is said of the others
        values = [other.estimates[metric.key].value for other in table.methods]
        best = max(metric.ahead(value) for value in values if value is not None)
        is_best = estimated.value is not None and metric.ahead(estimated.value) == best
        return plain._replace(best=is_best)
    return plain._replace(best=method.name == verdict.best, tied=method.name in verdict.tied)


def as_json(result: CompareResult) -> dict[str, Any]:
    """Everything that is a number or a word."""
    return {
        "target": text.target(result),
        "sets": [_set_json(table) for table in result.sets],
        "ranks": None if result.ranks is None else _ranks_json(result.ranks),
        "notes": [text.note(each) for each in result.notes],
    }


def _ranks_json(ranks: Ranks) -> dict[str, Any]:
    return asdict(ranks) | {"over": f"{ranks.blocks} {ranks.over}"}


def _set_json(table: ComparedSet) -> dict[str, Any]:
    return {
        "set": table.samples.name,
        "samples": len(table.samples.labels),
        "classes": table.samples.num_classes,
        "by": table.by.key,
        "methods": {method.name: _method_json(method, table) for method in table.methods},
        "noise": {key: asdict(verdict) for key, verdict in table.verdicts.items()},
    }


def _method_json(method: Method, table: ComparedSet) -> dict[str, Any]:
    variants = {AS_TRAINED: method.as_trained}
    if table.samples.target is not None:
        variants[UNDER_TARGET] = method.estimates
    return {
        "runs": [{"seed": run.seed, "source": run.source} for run in method.runs],
        "moved_to_target": all(run.moved for run in method.runs),
        "rank": None if table.ranks is None else table.ranks.mean[method.name],
        "metrics": {
            name: {metric.key: asdict(estimates[metric.key]) for metric in table.metrics}
            for name, estimates in variants.items()
        },
    }
