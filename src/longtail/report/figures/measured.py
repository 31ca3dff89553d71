"""The picture of a measure, as its paper draws it: a table from the measure's name to a figure.

Values are those of `flows.reproduce.inspect.measure`. Where a paper's figure shows one network,
there is a panel for each row; where seeds are not averaged, the first is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from longtail.flows.figure_curves import Floats, Values, floats, labels_of, reliability_of
from longtail.flows.score_measures import DRAWN_OF
from longtail.flows.tsne import TsneMap
from longtail.report.charts.chart import Chart, panels
from longtail.report.figures import classes as along_the_tail
from longtail.report.figures import curves, representations

if TYPE_CHECKING:
    from longtail.core.arrays import ArrayLike
    from longtail.flows.score_measures import Value


def _numbers(seed: Mapping[str, Value], name: str) -> Floats:
    return np.asarray(seed[name], dtype=np.float64)


class _Shown(NamedTuple):
    """What there is to draw."""

    rows: Mapping[str, Sequence[Mapping[str, Value]]]
    counts: ArrayLike
    classes: Sequence[str] | None
    groups: Mapping[str, ArrayLike] | None

    def values(self, name: str) -> Values:
        """Of the first seed of each row."""
        return {row: _numbers(seeds[0], name) for row, seeds in self.rows.items()}

    def each(self, name: str, draw: Callable[[Floats], Chart]) -> Chart:
        """A panel for each row, or the chart itself if there is only one row."""
        charts = [draw(_numbers(seeds[0], name)) for seeds in self.rows.values()]
        if len(charts) == 1:
            return charts[0]
        return panels(charts, title=" and ".join(self.rows), headings=list(self.rows))


_Draw: TypeAlias = Callable[[_Shown], Chart]


def measured_chart(
    measure: str,
    rows: Mapping[str, Sequence[Mapping[str, Value]]],
    counts: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
) -> Chart | None:
    """The picture of a measure; None where it has none, or no row has what it is drawn of.

    Args:
        measure: Its name, or "tsne" or "reliability".
        rows: By name, what was measured of each seed, with what `DRAWN_OF` names.
        counts: Training samples of each class.
        classes: Their names.
        groups: A boolean mask over the classes for each group; by default many, medium and few.

    >>> rows = {"CE": [{"bias": [0.7, -0.7]}], "ours": [{}]}
    >>> measured_chart("bias", rows, counts=[90, 10]).count('class="mark"')
    4
    """
    needed = {measure, *DRAWN_OF.get(measure, ())}
    full = {row: seeds for row, seeds in rows.items() if seeds and needed <= set(seeds[0])}
    if measure not in DRAWINGS or not full:
        return None
    return DRAWINGS[measure](_Shown(full, counts, classes, groups))


def _lines(name: str, chart: Callable[..., Chart]) -> _Draw:
    """All rows in one plot along the tail."""
    return lambda shown: chart(shown.values(name), shown.counts, classes=shown.classes)


def _panels(name: str, chart: Callable[..., Chart]) -> _Draw:
    """A plot of the classes for each row."""
    return lambda shown: shown.each(
        name, lambda values: chart(values, shown.counts, classes=shown.classes)
    )


def _margins(chart: Callable[..., Chart]) -> _Draw:
    """One number a test sample in each group; all rows have the same samples."""

    def draw(shown: _Shown) -> Chart:
        labels = np.asarray(next(iter(shown.rows.values()))[0]["labels"])
        return chart(shown.values("margins"), labels, shown.counts, shown.groups)

    return draw


def _distances(shown: _Shown) -> Chart:
    labels = labels_of(shown.counts)
    distances = shown.values("largest_distances")
    return curves.largest_distances_chart(distances, labels, shown.counts, shown.groups)


def _recalls(shown: _Shown) -> Chart:
    shares = {row: _numbers(seeds[0], "recall") / 100 for row, seeds in shown.rows.items()}
    return along_the_tail.class_accuracy_chart(shares, shown.counts, classes=shown.classes)


def _norms(shown: _Shown) -> Chart:
    return representations.weight_norms_chart(
        {
            row: [(_numbers(seed, "weight_norm"), shown.counts) for seed in seeds]
            for row, seeds in shown.rows.items()
        }
    )


def _offset_pairs(shown: _Shown) -> Chart:
    kinds = ("empirical", "estimated")
    pairs = {
        f"{row}, {kind}": _numbers(seeds[0], f"{kind}_offset")
        for row, seeds in shown.rows.items()
        for kind in kinds
    }
    return along_the_tail.offsets_chart(pairs, shown.counts, classes=shown.classes)


def _group_curves(shown: _Shown) -> Chart:
    names = ("epoch", *(f"val_{group}" for group in along_the_tail.GROUPS))
    return shown.each(
        "group_curves",
        lambda values: curves.group_curves_chart(
            [dict(zip(names, row, strict=True)) for row in values.tolist()]
        ),
    )


def _tsne(shown: _Shown) -> Chart:
    def draw(values: Floats) -> Chart:
        places = TsneMap.of(values, floats(shown.counts))
        return representations.tsne_chart(places, classes=shown.classes)

    return shown.each("tsne", draw)


DRAWINGS: dict[str, _Draw] = {
    "recall": _recalls,
    "mean_probability": _lines("mean_probability", along_the_tail.mean_probability_chart),
    "false_positives": lambda shown: along_the_tail.false_positives_chart(
        shown.values("false_positives"), shown.counts
    ),
    "positive_logit": _panels("class_logits", along_the_tail.class_logits_chart),
    "weight_norm": _norms,
    "bias": _lines("bias", along_the_tail.offsets_chart),
    "empirical_offset": _lines("empirical_offset", along_the_tail.offsets_chart),
    "estimated_offset": _offset_pairs,
    "offset_gap": _lines("offset_gap", along_the_tail.offsets_chart),
    "margin_std": _margins(curves.margins_chart),
    "margin_mean": _margins(curves.margin_cdf_chart),
    "largest_distance": _distances,
    "rise_time": _group_curves,
    "intra_class_variance": _panels("intra_class_variance", representations.variance_chart),
    "centroid_displacement": _panels("centroid_displacement", representations.displacement_chart),
    "projection_weight": _panels("projections", representations.projections_chart),
    "cdnv_curve": lambda shown: representations.cdnv_chart(shown.values("cdnv_curve")),
    "cdnv": _tsne,
    "tsne": _tsne,
    "reliability": lambda shown: curves.reliability_chart(
        {
            row: reliability_of(_numbers(seeds[0], "reliability"))
            for row, seeds in shown.rows.items()
        }
    ),
}
