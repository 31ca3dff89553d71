"""Accuracy of many-, medium- and few-shot classes over the epochs (NCM fig. 4)."""

from collections.abc import Mapping, Sequence

from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart

GROUPS = ("many", "medium", "few")


def group_curves_chart(log: Sequence[Mapping[str, float | None]], title: str = "") -> Chart:
    """Validation accuracy of each group after each epoch: many learn first, then medium, then few.

    Args:
        log: For each epoch `epoch`, `val_many`, `val_medium`, `val_few`; None where unknown.
        title: What a screen reader says first; not drawn.

    >>> rows = [{"epoch": 1.0, "val_many": 0.5}, {"epoch": 2.0, "val_many": 0.75}]
    >>> "many-shot starts at 50 and ends at 75" in group_curves_chart(rows)
    True
    """
    rows = [row for row in log if any(row.get(f"val_{name}") is not None for name in GROUPS)]
    if not rows:
        raise ValueError(
            "the log has no accuracy of many, medium and few: train with a validation part, "
            "data.held_out=0.1"
        )
    lines = []
    for name in GROUPS:
        points = [(row["epoch"], row.get(f"val_{name}")) for row in rows]
        known = {at: 100 * value for at, value in points if at is not None and value is not None}
        if known:
            lines.append(Line(f"{name}-shot", list(known), list(known.values())))
    return line_chart(
        lines,
        title=title or "Accuracy of groups of classes over the epochs",
        x_title="epoch",
        y_title="validation accuracy (%)",
    )
