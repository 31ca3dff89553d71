"""One number a class, along the tail: classes from the most frequent to the rarest.

Below the picture stand the training counts, on the same axis. Where classes are many, each is a
pale dot, and a running mean over neighbours in frequency is the line.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import ArrayLike, as_numpy
from longtail.core.labels import check_counts
from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.frame import WIDTH, Reference
from longtail.report.charts.lines import Line, Mark, line_chart

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = ArrayLike | Mapping[str, ArrayLike]  # of one run, or of several by their names
AXIS = "class, from the most frequent to the rarest"
_GREY = 20  # the number of a grey line without dashes
_FEW_ENOUGH = 30  # so many classes are read one by one
_ROOM = 44.0


class Tail(NamedTuple):
    """The classes in the order of their training counts."""

    order: npt.NDArray[np.int64]
    counts: Floats
    names: list[str]

    @property
    def places(self) -> range:
        """1 for the most frequent class."""
        return range(1, len(self.order) + 1)


def floats(values: ArrayLike) -> Floats:
    """Values as float64 NumPy numbers, for drawing."""
    return np.asarray(as_numpy(values), dtype=np.float64)


def in_percent(*shares: object) -> list[Floats]:
    """Shares of the classes in percent: those of a prior, say, and the ends of its interval."""
    return [100 * np.asarray(part) for part in shares]


def by_name(values: Values, name: str = "model") -> dict[str, Floats]:
    """The values of each run under its name; those of one run under the name given."""
    named = values if isinstance(values, Mapping) else {name: values}
    if not named:
        raise ValueError("a figure needs values, got none; give an array or a dict of arrays")
    return {key: floats(each) for key, each in named.items()}


def tail_of(counts: ArrayLike, classes: Sequence[str] | None = None) -> Tail:
    """The classes from the most frequent to the rarest, equal ones by their index."""
    samples = floats(check_counts(counts))
    if classes is not None and len(classes) != len(samples):
        raise ValueError(f"got {len(classes)} class names but {len(samples)} counts")
    order = np.argsort(-samples, kind="stable")
    names = [f"class {k}" if classes is None else classes[k] for k in order]
    return Tail(order, samples[order], names)


def along(tail: Tail, values: Floats, name: str) -> Floats:
    """One number a class, in class order, put into the order of the tail."""
    if values.shape != tail.order.shape:
        raise ValueError(
            f"{name!r} must be one number for each of {len(tail.order)} classes, "
            f"got shape {values.shape}"
        )
    return values[tail.order]


def class_lines(name: str, values: Floats, tail: Tail, style: int) -> list[Line]:
    """One number a class, in class order, as a line along the tail; NaN leaves a gap."""
    ordered, names = along(tail, values, name), tail.names
    if len(ordered) <= _FEW_ENOUGH:
        return [Line(name, tail.places, ordered, labels=names, mark="both", style=style)]
    faint = Line(name, tail.places, ordered, labels=names, mark="dots", style=style, faint=True)
    smooth = running_mean(ordered, max(5, len(ordered) // 12))
    at = _thinned(len(ordered), 120)
    return [faint, Line(name, at + 1, smooth[at], style=style)]


def over_classes(
    lines: Sequence[Line],
    tail: Tail,
    *,
    title: str,
    y_title: str,
    reference: Reference | None = None,
    width: float = WIDTH,
) -> Chart:
    """The lines above, the training counts below."""
    pad = max(0.02 * len(tail.order), 0.15)
    draw = partial(line_chart, x_range=(1 - pad, len(tail.order) + pad), y_room=_ROOM, width=width)
    upper = draw(lines, title=title, y_title=y_title, reference=reference)
    at = _thinned(len(tail.order), 300)
    counts = np.where(tail.counts > 0, tail.counts, np.nan)[at]
    floor = np.ones_like(counts)
    bars = Line("training samples", at + 1, counts, floor, counts, style=_GREY, faint=True)
    lower = draw(
        [bars],
        title="Training samples",
        x_title=AXIS,
        y_title="training samples, by their logarithm",
        log_y=True,
        height=70,
    )
    return panels([upper, lower], title=title)


def ordered_chart(
    series: Mapping[str, Sequence[Floats] | None],
    order: npt.NDArray[np.int64],
    classes: Sequence[str],
    *,
    title: str,
    x_title: str,
    y_title: str,
    mark: Mark = "line",
) -> Chart:
    """One number a class, with the ends of its interval where there are some, in a given order.

    Lines without values are left out, and the others keep their colours.
    """
    lines, names = [], [classes[k] for k in order]
    for style, (name, parts) in enumerate(series.items()):
        if parts is not None:
            value, *ends = (part[order] for part in parts)
            low, high = ends or (None, None)
            places = range(1, len(order) + 1)
            lines.append(Line(name, places, value, low, high, labels=names, mark=mark, style=style))
    return line_chart(lines, title=title, x_title=x_title, y_title=y_title, width=960)


def running_mean(values: Floats, window: int) -> Floats:
    """The mean over so many neighbours, fewer at the ends, NaN left out."""
    finite = ~np.isnan(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite, values, 0.0))])
    sizes = np.concatenate([[0], np.cumsum(finite)])
    places = np.arange(len(values))
    low = np.maximum(places - window // 2, 0)
    high = np.minimum(places + window // 2 + 1, len(values))
    number = sizes[high] - sizes[low]
    mean: Floats = np.where(number > 0, (sums[high] - sums[low]) / np.maximum(number, 1), np.nan)
    return mean


def _thinned(size: int, most: int) -> npt.NDArray[np.int64]:
    """Evenly spaced places among so many, the first and the last with them."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.int64))
