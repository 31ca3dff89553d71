"""The first screen: every headline metric before and after, with intervals."""

from __future__ import annotations

import math

from longtail.flows.changes import Change, Direction
from longtail.flows.judge import Judgement
from longtail.metrics import Interval
from longtail.report.names import METRICS
from longtail.report.table import Column, Table

_FEW = 5  # of a class with fewer samples an interval knows little
_WORDS = {
    Direction.BETTER: "better",
    Direction.WORSE: "worse",
    Direction.CHANCE: "may be chance",
}


def first_table(judgement: Judgement) -> Table:
    """The table of the first screen, with 95 % intervals; one column where nothing was done."""
    if judgement.samples.is_changed:
        columns = ["metric", *judgement.samples.names, "change"]
        return Table(
            [Column(name) for name in columns], metric_rows(judgement), _caption(judgement)
        )
    rows = [[METRICS[key], _interval(judgement.before[key], key)] for key in judgement.metrics]
    return Table([Column("metric"), Column("value")], rows, _caption(judgement))


def metric_rows(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each metric that there is."""
    return [
        (
            METRICS[key],
            _interval(change.before, key),
            _interval(change.after, key),
            _change(change, key),
        )
        for key, change in judgement.changes.items()
    ]


def _caption(judgement: Judgement) -> str:
    sentences = ["In %, but for the log-loss; in brackets 95 % intervals."]
    if judgement.samples.shot_groups:
        sentences.append(
            "Many-shot classes have more than 100 training samples, few-shot ones fewer than 20."
        )
    counts = judgement.label_counts
    few = int(((counts > 0) & (counts < _FEW)).sum())
    if few:
        sentences.append(
            f"Classes with fewer than {_FEW} samples here: {few:,} of {len(counts):,}; "
            "their share of the intervals is borrowed from the other classes."
        )
    return " ".join(sentences)


def _interval(measured: Interval, key: str) -> str:
    value, low, high = measured.value, measured.low, measured.high
    if value is None:
        return "none"
    if low is None or high is None or not math.isfinite(value):
        return _number(value, key)
    return f"{_number(value, key)} [{_number(low, key)},\u00a0{_number(high, key)}]"


def _change(change: Change, key: str) -> str:
    """The difference with its paired interval where there is one, and what it means."""
    difference = change.difference
    if difference is None or difference.value is None or change.direction is Direction.NONE:
        return "none"
    if not round(difference.value, 3):  # as many digits as are shown, of a share in percent too
        return "none"
    text = _number(difference.value, key, "+")
    if difference.low is not None and difference.high is not None:
        ends = (_number(end, key, "+") for end in (difference.low, difference.high))
        text += f" [{', '.join(ends)}]"  # it may break on a phone
    return f"{text} {_WORDS[change.direction]}"


def _number(value: float, key: str, sign: str = "") -> str:
    """Shares in percent; infinite is the log-loss of a sample whose class was ruled out."""
    text = f"{value:{sign}.3f}" if key == "nll" else f"{100 * value:{sign}.1f}"
    return text.replace("-", "−").replace("inf", "∞")
