"""How far learned centroids moved from the class means (NCM fig. 6, left)."""

from collections.abc import Sequence

from longtail.core.arrays import Array, ArrayLike
from longtail.metrics.representations import centroid_displacement
from longtail.report.charts.chart import Chart
from longtail.report.figures.against_counts import against_counts


def displacement_chart(
    centers: Array,
    start: ArrayLike,
    counts: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
) -> Chart:
    """‖μ_y − μ̃_y‖ of each class over its training count.

    Means of few samples are the least certain, yet the paper finds all classes moved alike.

    Args:
        centers: Learned centroids, shape (C, D).
        start: Where they began, such as the class means.
        counts: Training samples of each class.
        classes: The names of the classes.

    >>> chart = displacement_chart([[3.0, 4.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [90, 10])
    >>> "starts at 5 and ends at 1" in chart
    True
    """
    return against_counts(
        centroid_displacement(centers, start),
        counts,
        classes,
        title="How far the centroids moved",
        y_title="distance of the learned centroid from where it began",
    )
