"""Over the epochs: accuracy of groups of classes, and how well centroids stand apart."""

from collections.abc import Mapping, Sequence

from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, Mark, line_chart
from longtail.report.figures.tail import Values, by_name

GROUPS = ("many", "medium", "few")


def group_curves_chart(log: Sequence[Mapping[str, float | None]], title: str = "") -> Chart:
    """Validation accuracy of many-, medium- and few-shot classes after each epoch (NCM fig. 4).

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


def cdnv_chart(values: Values, *, epochs: Sequence[float] | None = None) -> Chart:
    """Class-distance normalised variance after each epoch, the lower the better (NCM fig. 6).

    Args:
        values: The mean over pairs of classes after each epoch
            (`metrics.representations.mean_cdnv`), or several such under their names.
        epochs: When they were taken; by default 0, 1, 2 and so on.

    >>> "starts at 0.5 and ends at 0.125" in cdnv_chart([0.5, 0.125])
    True
    """
    lines = []
    for name, each in by_name(values, "learned centroids").items():
        at = list(range(len(each))) if epochs is None else list(epochs)
        mark: Mark = "both" if len(each) <= 30 else "line"
        lines.append(Line(name, at, each, mark=mark))
    return line_chart(
        lines,
        title="Class-distance normalised variance over the epochs",
        x_title="epoch",
        y_title="mean CDNV of all pairs of classes",
    )
