r"""How one number a sample is distributed: a panel for each group of classes, a line a run.

Margins γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x) are positive where a sample is classified right. The
paper draws one label of the head, torso and tail; here a panel is a group of classes, which may be
a single one.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from longtail.core.arrays import ArrayLike
from longtail.core.labels import check_labels
from longtail.flows import figure_curves
from longtail.flows.figure_curves import Floats, Values, by_name, density
from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.lines import Line, line_chart
from longtail.report.names import how_many

Groups: TypeAlias = Mapping[str, ArrayLike]
_HEIGHT, _ROOM = 110.0, 36.0
_MARGIN = "margin: logit of the true class over the highest other"


def margins_chart(
    margins: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The density of margins (`metrics.margins`) in each group of classes (ELM fig. 3).

    Groups are a boolean mask over the classes for each panel; by default many, medium and few.

    >>> chart = margins_chart([2.0, -1.0, -0.1], labels=[0, 1, 0], counts=[900, 10])
    >>> "many: 1 class, 2 samples" in chart, "few: 1 class, 1 sample" in chart
    (True, True)
    """
    titles = "Margins by group", _MARGIN, "density"
    return _group_panels(by_name(margins), labels, counts, groups, density, *titles)


def margin_cdf_chart(
    margins: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The share of samples whose margin is at most each value, in each group (ELM fig. 6).

    At a margin of zero stands the group's error. A curve further to the right is better. Arguments
    are those of `margins_chart`.

    >>> chart = margin_cdf_chart([2.0, -1.0, -0.1], labels=[0, 1, 0], counts=[900, 10])
    >>> chart.count('class="line"')
    2
    """
    titles = "Cumulative margins by group", _MARGIN, "samples at most there (%)"
    curve = figure_curves.cumulative_share
    return _group_panels(by_name(margins), labels, counts, groups, curve, *titles, points=161)


def largest_distances_chart(
    distances: Values, labels: ArrayLike, counts: ArrayLike, groups: Groups | None = None
) -> Chart:
    """The density of the largest distances within classes, by group (ELM fig. 4).

    The further left, the more compact classes are. A sample's distance is that to the farthest of
    its class (`metrics.representations.largest_intra_class_distances`); the other arguments are
    those of `margins_chart`.

    >>> chart = largest_distances_chart([0.5, 0.5, 0.1, 0.1], [0, 0, 1, 1], counts=[900, 10])
    >>> chart.count('class="line"')
    2
    """
    title = "Largest distance within the class, by group"
    titles = title, "distance to the farthest of the class, over the largest norm", "density"
    named = by_name(distances, "features")
    return _group_panels(named, labels, counts, groups, density, *titles)


def _group_panels(
    named: Mapping[str, Floats],
    labels: ArrayLike,
    counts: ArrayLike,
    groups: Groups | None,
    curve: Callable[[Floats, Floats], Floats],
    title: str,
    x_title: str,
    y_title: str,
    points: int = 40,
) -> Chart:
    """The curve of each run's values in each group of classes, all over the same places."""
    masks, places = (
        figure_curves.masks_of(groups, counts),
        figure_curves.places_for(named.values(), points),
    )
    true = check_labels(labels, len(next(iter(masks.values()), ())))
    for name, values in named.items():
        if values.shape != true.shape:
            raise ValueError(
                f"{name!r} must be one number for each of {len(true)} labels, "
                f"got shape {values.shape}"
            )
    charts, headings = [], []
    for number, (group, mask) in enumerate(masks.items(), start=1):
        inside = mask[true]
        charts.append(
            line_chart(
                [Line(name, places, curve(own[inside], places)) for name, own in named.items()],
                title=f"{title}: {group}",
                x_title=x_title if number == len(masks) else "",
                y_title=y_title,
                x_range=(float(places[0]), float(places[-1])),
                y_room=_ROOM,
                height=_HEIGHT,
            )
        )
        classes = how_many(int(mask.sum()), "class", "classes")
        headings.append(f"{group}: {classes}, {how_many(int(inside.sum()), 'sample')}")
    return panels(charts, title=title, headings=headings)
