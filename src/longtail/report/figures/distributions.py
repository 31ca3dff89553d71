"""How one number a sample is distributed: a panel for each group of classes, a line a run."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from torch import Tensor

from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.runs import Floats

_BINS = 40
_OUTER = 0.002  # the share of samples on either side that may fall outside the frame
_HEIGHT, _ROOM = 110.0, 36.0


class SampleValues(NamedTuple):
    """One number a sample of a run, and the sample's class."""

    name: str
    values: Floats
    labels: Tensor


def group_panels(
    runs: Iterable[SampleValues],
    groups: Mapping[str, Tensor],
    curve: Callable[[Floats, Floats], Floats],
    *,
    places: Floats,
    title: str,
    x_title: str,
    y_title: str,
) -> Chart:
    """The curve of each run's values over the places, in each group of classes.

    Args:
        runs: The values.
        groups: A boolean mask over the classes for each panel.
        curve: From the values of one group and the places to one height a place.
        places: Where curves are drawn.
        title: What a screen reader says first.
        x_title: What the values are.
        y_title: What the heights are.
    """
    known = list(runs)
    charts, headings = [], []
    for number, (group, mask) in enumerate(groups.items(), start=1):
        inside = [run.values[mask[run.labels].numpy()] for run in known]
        lines = [
            Line(run.name, places, curve(own, places))
            for run, own in zip(known, inside, strict=True)
        ]
        charts.append(
            line_chart(
                lines,
                title=f"{title}: {group}",
                x_title=x_title if number == len(groups) else "",
                y_title=y_title,
                x_range=(float(places[0]), float(places[-1])),
                y_room=_ROOM,
                height=_HEIGHT,
            )
        )
        classes, sizes = _said(int(mask.sum()), "class"), {len(own) for own in inside}
        samples = f", {_said(sizes.pop(), 'sample')}" if len(sizes) == 1 else ""
        headings.append(f"{group}: {classes}{samples}")
    return panels(charts, title=title, headings=headings)


def density(values: Floats, places: Floats) -> Floats:
    """A histogram of bins around the places, with area one; NaN without values."""
    finite = values[np.isfinite(values)]
    step = places[1] - places[0]
    edges = np.append(places - step / 2, places[-1] + step / 2)
    heights: Floats = np.histogram(finite, edges)[0] / (step * (len(finite) or np.nan))
    return heights


def places_for(values: Iterable[Floats], number: int = _BINS) -> Floats:
    """Evenly spaced places from the lowest to the highest value, but for the outermost few."""
    every = np.concatenate(list(values))
    finite = every[np.isfinite(every)]
    low, high = 0.0, 1.0
    if len(finite):
        ends = np.quantile(finite, [_OUTER, 1 - _OUTER], method="closest_observation")
        room = 0.02 * (ends[1] - ends[0]) or 0.5
        low, high = ends[0] - room, ends[1] + room
    return np.linspace(low, high, number)


def _said(number: int, word: str) -> str:
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{number:,} {word if number == 1 else many}"
