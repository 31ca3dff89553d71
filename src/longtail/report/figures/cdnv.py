"""Class-distance normalised variance over the epochs (NCM fig. 6, right)."""

from collections.abc import Mapping, Sequence

from longtail.core.arrays import Array, ArrayLike
from longtail.metrics.representations import mean_cdnv
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, Mark, line_chart


def cdnv_chart(
    variances: ArrayLike,
    centers: Sequence[Array] | Mapping[str, Sequence[Array]],
    *,
    epochs: Sequence[float] | None = None,
) -> Chart:
    """The mean CDNV over all pairs of classes after each epoch: the lower, the better apart.

    Args:
        variances: E‖Φ − μ_y‖² of each class: `intra_class_variance(..., measure="trace")`.
        centers: Centroids of shape (C, D) after each epoch, or several such under their names.
        epochs: When they were taken; by default 0, 1, 2 and so on.

    >>> begin, end = [[0.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [4.0, 0.0]]
    >>> "starts at 0.5 and ends at 0.125" in cdnv_chart([1.0, 3.0], [begin, end])
    True
    """
    named = centers if isinstance(centers, Mapping) else {"learned centroids": centers}
    lines = []
    for name, each in named.items():
        at = list(range(len(each))) if epochs is None else list(epochs)
        mark: Mark = "both" if len(each) <= 30 else "line"
        lines.append(Line(name, at, [mean_cdnv(variances, rows) for rows in each], mark=mark))
    return line_chart(
        lines,
        title="Class-distance normalised variance over the epochs",
        x_title="epoch",
        y_title="mean CDNV of all pairs of classes",
    )
