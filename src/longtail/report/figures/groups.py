r"""How one number a sample is distributed: a panel for each group of classes, a line a run.

Margins γ(x, y) = f_y(x) − max_{y'≠y} f_y'(x) are positive where a sample is classified right. The
paper draws one label of the head, torso and tail; here a panel is a group of classes, which may be
a single one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import shot_groups
from longtail.core.arrays import ArrayLike, as_numpy
from longtail.core.labels import check_counts, check_labels
from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.tail import Floats, Values, by_name
from longtail.report.names import how_many

Groups: TypeAlias = Mapping[str, ArrayLike]
_OUTER = 0.002  # the share of samples on either side that may fall outside the frame
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
    said = "Margins by group", _MARGIN, "density"
    return _group_panels(by_name(margins), labels, masks_of(groups, counts), density, *said)


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
    said = "Cumulative margins by group", _MARGIN, "samples at most there (%)"
    masks = masks_of(groups, counts)
    return _group_panels(by_name(margins), labels, masks, _shares, *said, points=161)


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
    said = title, "distance to the farthest of the class, over the largest norm", "density"
    named = by_name(distances, "features")
    return _group_panels(named, labels, masks_of(groups, counts), density, *said)


def masks_of(groups: Groups | None, counts: ArrayLike) -> dict[str, npt.NDArray[np.bool_]]:
    """A boolean mask over the classes for each group: those given, or many, medium and few."""
    size = len(check_counts(counts))
    if groups is None:
        shot = {name: as_numpy(mask) for name, mask in shot_groups(counts).items()}
        return {name: mask for name, mask in shot.items() if mask.any()}
    masks = {name: as_numpy(mask).astype(bool) for name, mask in groups.items()}
    for name, mask in masks.items():
        if mask.shape != (size,):
            raise ValueError(
                f"group {name!r} must be a mask over {size} classes, got shape {mask.shape}"
            )
    return masks


def density(values: Floats, places: Floats) -> Floats:
    """A histogram of bins around the places, with area one; NaN without values."""
    finite = values[np.isfinite(values)]
    step = places[1] - places[0]
    edges = np.append(places - step / 2, places[-1] + step / 2)
    heights: Floats = np.histogram(finite, edges)[0] / (step * (len(finite) or np.nan))
    return heights


def places_for(values: Iterable[Floats], number: int = 40) -> Floats:
    """Evenly spaced places from the lowest to the highest value, but for the outermost few."""
    every = np.concatenate(list(values))
    finite = every[np.isfinite(every)]
    low, high = 0.0, 1.0
    if len(finite):
        ends = np.quantile(finite, [_OUTER, 1 - _OUTER], method="closest_observation")
        room = 0.02 * (ends[1] - ends[0]) or 0.5
        low, high = ends[0] - room, ends[1] + room
    return np.linspace(low, high, number)


def _shares(values: Floats, places: Floats) -> Floats:
    below = np.searchsorted(np.sort(values), places, side="right")
    return np.asarray(100 * below / (len(values) or np.nan))


def _group_panels(
    named: Mapping[str, Floats],
    labels: ArrayLike,
    groups: Mapping[str, npt.NDArray[np.bool_]],
    curve: Callable[[Floats, Floats], Floats],
    title: str,
    x_title: str,
    y_title: str,
    points: int = 40,
) -> Chart:
    """The curve of each run's values in each group of classes, all over the same places."""
    places = places_for(named.values(), points)
    size = len(next(iter(groups.values()))) if groups else 0
    known = check_labels(labels, size)
    for name, values in named.items():
        if values.shape != known.shape:
            raise ValueError(
                f"{name!r} must be one number for each of {len(known)} labels, "
                f"got shape {values.shape}"
            )
    charts, headings = [], []
    for number, (group, mask) in enumerate(groups.items(), start=1):
        inside = mask[known]
        charts.append(
            line_chart(
                [Line(name, places, curve(own[inside], places)) for name, own in named.items()],
                title=f"{title}: {group}",
                x_title=x_title if number == len(groups) else "",
                y_title=y_title,
                x_range=(float(places[0]), float(places[-1])),
                y_room=_ROOM,
                height=_HEIGHT,
            )
        )
        classes = how_many(int(mask.sum()), "class", "classes")
        headings.append(f"{group}: {classes}, {how_many(int(inside.sum()), 'sample')}")
    return panels(charts, title=title, headings=headings)
