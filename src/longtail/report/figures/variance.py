"""Intra-class variance against class frequency (NCM fig. 2, 7, 8)."""

from collections.abc import Sequence

from longtail.core.arrays import Array, ArrayLike
from longtail.core.tensors import count_tensor
from longtail.metrics.representations import Measure, intra_class_variance
from longtail.report.charts.chart import Chart
from longtail.report.figures.against_counts import against_counts

_WORDS = {
    "largest_eigenvalue": "largest eigenvalue of the class's covariance",
    "trace": "mean squared distance to the class's mean",
    "mean_distance": "mean distance to the class's mean",
}


def variance_chart(
    features: Array,
    labels: ArrayLike,
    counts: ArrayLike,
    *,
    measure: Measure = "largest_eigenvalue",
    classes: Sequence[str] | None = None,
) -> Chart:
    """How far the features of a class spread, over how often it was trained on.

    The paper finds the tail spread wider. A class needs two samples.

    Args:
        features: Shape (N, D); of a test set, so that the tail has samples enough to measure.
        labels: Class indices.
        counts: Training samples of each class.
        measure: As for `metrics.intra_class_variance`; "trace" is the fastest.
        classes: The names of the classes.

    >>> features = [[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -1.0]]
    >>> chart = variance_chart(features, [0, 0, 1, 1], counts=[90, 10])
    >>> "rank correlation 1.00" in chart
    True
    """
    size = len(count_tensor(counts))
    return against_counts(
        intra_class_variance(features, labels, size, measure=measure),
        counts,
        classes,
        title="Spread of each class against its frequency",
        y_title=_WORDS[measure],
    )
