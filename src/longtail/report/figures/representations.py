"""What features look like, class by class: how far they spread, moved, mix, and what counts."""

from collections.abc import Mapping, Sequence

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.flows.figure_curves import (
    Integers,
    Values,
    block_means,
    by_name,
    floats,
    mean_band,
    rank_correlation,
    tail_of,
)
from longtail.flows.tsne import TsneMap
from longtail.report.charts.chart import Chart
from longtail.report.charts.heat import heat_chart
from longtail.report.charts.lines import Line, Mark, line_chart
from longtail.report.charts.plane import Points, plane_chart
from longtail.report.charts.scale import fixed
from longtail.report.figures.classes import AXIS

_MOST_ROWS, _MOST_COLUMNS = 20, 16
_SPREADS = {
    "largest_eigenvalue": "largest eigenvalue of the class's covariance",
    "trace": "mean squared distance to the class's mean",
    "mean_distance": "mean distance to the class's mean",
}


def variance_chart(
    variances: ArrayLike,
    counts: ArrayLike,
    *,
    measure: str = "largest_eigenvalue",
    classes: Sequence[str] | None = None,
) -> Chart:
    """How far features of a class spread, over how often it was trained on (NCM fig. 2, 7, 8).

    The paper finds the tail spread wider. Variances are those of
    `metrics.representations.intra_class_variance` by that measure; best of a test set, so that the
    tail has samples enough to measure.

    >>> "rank correlation 1.00" in variance_chart([4.0, 1.0], counts=[90, 10])
    True
    """
    if measure not in _SPREADS:
        raise ValueError(f"measure must be one of {', '.join(_SPREADS)}, got {measure!r}")
    title = "Spread of each class against its frequency"
    return _against_counts(variances, counts, classes, title, _SPREADS[measure])


def displacement_chart(
    distances: ArrayLike, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """How far learned centroids moved from the class means, ‖μ_y − μ̃_y‖ (NCM fig. 6).

    Means of few samples are the least certain, yet the paper finds all classes moved alike.

    Distances are those of `metrics.representations.centroid_displacement`.

    >>> "starts at 5 and ends at 1" in displacement_chart([5.0, 1.0], counts=[90, 10])
    True
    """
    y_title = "distance of the learned centroid from where it began"
    return _against_counts(distances, counts, classes, "How far the centroids moved", y_title)


def cdnv_chart(values: Values, *, epochs: Sequence[float] | None = None) -> Chart:
    """Class-distance normalised variance after each epoch, the lower the better (NCM fig. 6).

    Values are means over pairs of classes (`metrics.representations.mean_cdnv`), or several such
    under their names, after these epochs or after 0, 1, 2 and so on.

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


def weight_norms_chart(runs: Mapping[str, Sequence[tuple[ArrayLike, ArrayLike]]]) -> Chart:
    """Norms ‖w_y‖ of the head's rows by class, from the most frequent one on (LA fig. 1).

    Under SGD with momentum they follow the class frequencies, under Adam they need not, which is
    why dividing by them is no remedy that holds. A line has the norms
    (`metrics.representations.weight_norms`) and the training counts of one run, or of several,
    which are averaged, with a band of one standard deviation.

    >>> "SGD starts at 5 and ends at 1" in weight_norms_chart({"SGD": [([5.0, 1.0], [90, 10])]})
    True
    """
    lines = []
    for name, several in runs.items():
        ordered = [tail_of(counts).along(floats(norms), name) for norms, counts in several]
        mean, low, high = mean_band(ordered)
        lines.append(Line(name, range(1, len(mean) + 1), mean, low, high))
    title = "Norms of the weights of each class"
    return line_chart(lines, title=title, x_title=AXIS, y_title="norm of its weights")


def projections_chart(
    projections: ArrayLike, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """How much each eigen-direction of a class counts for its distance, σ(w) of NCM eq. 4 (fig. 3).

    Directions run from the smallest eigenvalue to the largest, classes from the most frequent to
    the rarest. Where there are more than fit, neighbours are averaged. In the paper the tail throws
    its directions of large variance away. Projections have shape (C, D), as those of
    `MetricNCM(..., metric="eigenbasis")`.

    >>> projections_chart([[0.9, 0.8], [0.7, 0.1]], counts=[90, 10]).count('class="mark"')
    4
    """
    tail = tail_of(counts, classes)
    values = floats(projections)
    if values.ndim != 2 or len(values) != len(tail.order):
        raise ValueError(
            f"projections must have shape ({len(tail.order)}, D), one row for each count, "
            f"got {values.shape}"
        )
    means, rows, columns = block_means(values[tail.order], _MOST_ROWS, _MOST_COLUMNS)
    single = len(rows) == len(values)
    return heat_chart(
        tail.names if single else [f"classes {_span(places)}" for places in rows],
        [_span(places) for places in columns],
        means,
        title="Local projections: how much each direction counts",
        row_title="by frequency",
        column_title="eigen-directions, smallest eigenvalue first",
        value_title="share",
    )


def tsne_chart(points: TsneMap, *, classes: Sequence[str] | None = None) -> Chart:
    """Where samples of a few classes lie, near ones staying near (NCM fig. 1, ELM fig. 5).

    Distances between clusters and their sizes mean little in t-SNE; which samples mix does.
    """
    called = [f"class {k}" if classes is None else classes[k] for k in points.labels]
    return plane_chart(
        [
            Points(f"{name} ({size:,})", at[:, 0], at[:, 1])
            for name, size, at in zip(called, points.sizes, points.places, strict=True)
        ],
        title="Features of some classes by t-SNE",
        colored=True,
        axes=False,
    )


def _against_counts(
    values: ArrayLike, counts: ArrayLike, classes: Sequence[str] | None, title: str, y_title: str
) -> Chart:
    """A dot a class over its count; the legend has Spearman's rank correlation."""
    tail, numbers = tail_of(counts, classes), floats(values)
    shown = np.where(tail.counts > 0, tail.along(numbers, "values"), np.nan)
    rank = rank_correlation(numbers, counts)
    name = "each dot a class" + ("" if rank is None else f", rank correlation {fixed(rank, 2)}")
    each = Line(name, np.maximum(tail.counts, 1), shown, labels=tail.names, mark="dots")
    return line_chart(
        [each], title=title, x_title="training samples of the class", y_title=y_title, log_x=True
    )


def _span(places: Integers) -> str:
    first, last = places[0] + 1, places[-1] + 1
    return f"{first}" if first == last else f"{first}–{last}"
