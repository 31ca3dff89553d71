"""Offsets of each class: what a classifier adds to it, along the tail (EO fig. 1, 3)."""

from collections.abc import Sequence

from longtail.core.arrays import Array, ArrayLike
from longtail.metrics.representations import class_offsets
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line
from longtail.report.figures.over_classes import class_lines, over_classes, tail_of


def offsets_chart(
    counts: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    weight: Array | None = None,
    means: ArrayLike | None = None,
    centers: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
) -> Chart:
    """Trained, empirical and estimated offset of each class, above the training counts.

    Args:
        counts: Training samples of each class.
        bias: The trained offsets b_y (fig. 1b).
        weight: Of the last layer, shape (C, D); needed for the other two.
        means: Class means μ̃_y: the empirical offset ½ μ̃_y·w_y (fig. 1c, 3).
        centers: Learned centres c_y: the estimated offset ½ c_y·w_y (fig. 3).
        classes: The names of the classes.

    >>> offsets_chart([90, 10], bias=[0.7, -0.7]).count('class="mark"')
    4
    """
    tail = tail_of(counts, classes)
    around = {"empirical offset ½ μ·w": means, "estimated offset ½ c·w": centers}
    given = {name: at for name, at in around.items() if at is not None}
    if (weight is None) == bool(given) or (bias is None and not given):
        raise ValueError(
            "offsets are the bias, or ½ c·w of a weight and of class means or centers; "
            "give bias, or weight together with means or centers"
        )
    values: dict[str, ArrayLike] = {} if bias is None else {"trained offset b": bias}
    if weight is not None:
        values |= {name: class_offsets(weight, at) for name, at in given.items()}
    lines: list[Line] = []
    for style, (name, offset) in enumerate(values.items()):
        lines += class_lines(name, offset, tail, style)
    return over_classes(lines, tail, title="Offsets of the classes", y_title="offset")
