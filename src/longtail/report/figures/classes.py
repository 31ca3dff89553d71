"""One number a class along the tail, from the most frequent class to the rarest.

Below the picture stand the training counts, on the same axis. Where classes are many, each is a
pale dot, and a running mean over neighbours in frequency is the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from longtail.core import GroupEdges, GroupsLike
from longtail.flows import figure_curves
from longtail.flows.figure_curves import Floats, Integers, Tail, Values, by_name, floats, tail_of
from longtail.report.charts.chart import Chart, panels
from longtail.report.charts.frame import WIDTH, Guide, Reference
from longtail.report.charts.lines import Line, Mark, line_chart
from longtail.report.charts.scale import readable

if TYPE_CHECKING:
    from longtail.core.arrays import ArrayLike

AXIS = "class, from the most frequent to the rarest"
GROUPS = ("many", "medium", "few")
_GREY = 20  # the number of a grey line without dashes
_FEW_ENOUGH = 30  # so many classes are read one by one
_ROOM = 44.0


def counts_chart(
    counts: Values, *, classes: Sequence[str] | None = None, groups: GroupsLike | None = None
) -> Chart:
    """How many samples each class has, from the most frequent to the rarest (EO fig. 1a).

    Of several sets under their names each is ordered by itself. `groups` are the edges of many and
    few, such as "many=100,few=20,inclusive".

    >>> counts_chart([500, 60, 7]).count('class="mark"')
    3
    """
    tails = {name: tail_of(each, classes) for name, each in by_name(counts, "samples").items()}
    lines = [
        Line(name, tail.places, tail.positive_counts, labels=tail.names, mark=_mark(tail.order))
        for name, tail in tails.items()
    ]
    longest = max(len(tail.order) for tail in tails.values())
    largest = max(tail.counts.max(initial=1.0) for tail in tails.values())
    edges = GroupEdges.of(groups)
    words = (
        (f"many: {'from' if edges.many_inclusive else 'above'} {edges.many}", edges.many),
        (f"few: {'up to' if edges.few_inclusive else 'below'} {edges.few}", edges.few),
    )
    guides = [
        Guide(word, [1, longest], [level, level]) for word, level in words if 0 < level <= largest
    ]
    return line_chart(
        lines,
        title="Samples of each class",
        x_title=AXIS,
        y_title="samples, by their logarithm",
        guides=guides,
        log_y=True,
    )


def class_accuracy_chart(
    recalls: Values,
    counts: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    width: float = WIDTH,
) -> Chart:
    """The recall of each class above the training counts (EO fig. 4).

    The legend has the geometric mean of the recalls, a recall of zero counting as 0.001. Recalls
    are those of `metrics.recalls`, or several such under their names.

    >>> "geometric mean 70.7 %" in class_accuracy_chart([1.0, 0.5], counts=[90, 10])
    True
    """
    named = by_name(recalls)
    percent = {name: 100 * each for name, each in named.items()}
    means = {
        name: f", geometric mean {100 * figure_curves.geometric_mean(each):.1f} %"
        for name, each in named.items()
    }
    titles = "Accuracy by class", "accuracy (%)"
    return _along_the_tail(percent, counts, classes, *titles, width, means)


def mean_probability_chart(
    probabilities: Values, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """The mean probability of each class on a balanced test set (LADE fig. 2).

    What follows the training prior, the grey curve, still carries it; without bias all classes
    have 1/C, the dotted level. Probabilities are means of `scores.probs()` over all samples, or
    several such under their names.

    >>> chart = mean_probability_chart({"cross-entropy": [0.75, 0.25]}, counts=[90, 10])
    >>> "training prior" in chart, "uniform: 50 %" in chart
    (True, True)
    """
    tail = tail_of(counts, classes)
    percent = {name: 100 * each for name, each in by_name(probabilities).items()}
    at = figure_curves.thinned(len(tail.order), 300)
    return _along_the_tail(
        percent,
        counts,
        classes,
        "Mean probability of each class",
        "mean probability (%)",
        reference=Reference(tail.uniform, f"uniform: {readable(tail.uniform, 3)} %"),
        beside=[Line("training prior", at + 1, tail.prior[at], style=_GREY)],
    )


def offsets_chart(
    offsets: Values, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """What a classifier adds to each class, above the training counts (EO fig. 1, 3).

    Offsets are the trained b_y, or ½ c_y·w_y of class means or learned centres
    (`metrics.representations.class_offsets`), or several such under their names.

    >>> offsets_chart({"trained offset b": [0.7, -0.7]}, counts=[90, 10]).count('class="mark"')
    4
    """
    named = by_name(offsets, "offset")
    return _along_the_tail(named, counts, classes, "Offsets of the classes", "offset")


def class_logits_chart(
    logits: Sequence[ArrayLike], counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """Mean logit of each class on its own samples and on the others, ± one standard deviation.

    For logits that carry the uniform prior and classes that can be told apart, positives tend to
    log C (LADE eq. 21, fig. 3): the dotted line. Logits are those of `metrics.class_logits`.

    >>> from longtail.metrics import class_logits
    >>> made = class_logits([[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]], [0, 1, 0])
    >>> "positives starts at 4 and ends at 2" in class_logits_chart(made, counts=[90, 10])
    True
    """
    tail = tail_of(counts, classes)
    lines = []
    for name, at in (("positives", 0), ("negatives", 2)):
        mean, spread = (tail.along(floats(part), name) for part in logits[at : at + 2])
        lines.append(Line(name, tail.places, mean, mean - spread, mean + spread, labels=tail.names))
    level = tail.log_size
    return _over_counts(
        lines,
        tail,
        title="Logits of positives and negatives by class",
        y_title="logit of the class, ± one standard deviation",
        reference=Reference(level, f"log C = {level:.2f}"),
    )


def false_positives_chart(
    false_positives: Values, counts: ArrayLike, *, share: bool = False
) -> Chart:
    """Mistakes taken for one of the k most frequent classes, over k (EO fig. 5).

    Straight where no class is favoured; concave, above the dotted line, where mistakes fall on
    frequent classes; convex where they fall on rare ones. The last point is the number of all
    mistakes. Values are those of `metrics.false_positives`, or several such under their names;
    with `share` in percent of each run's own mistakes, so that shapes compare.

    >>> "model starts at 0 and ends at 5" in false_positives_chart([4, 1], counts=[90, 10])
    True
    """
    tail, named = tail_of(counts), by_name(false_positives)
    size = len(tail.order)
    at = figure_curves.thinned(size + 1, 301)
    lines, guides = [], []
    for style, (name, each) in enumerate(named.items()):
        sums = figure_curves.cumulated(tail.along(each, name), share)
        lines.append(Line(name, at, sums[at], style=style))
        ends = [0, size], [0, float(sums[-1])]
        # In percent one line is that of every run; else each has its own, in its colour.
        if len(named) == 1 or share:
            guides = [Guide("no class favoured", *ends)]
        else:
            guides.append(Guide(f"no class favoured, {name}", *ends, style))
    return line_chart(
        lines,
        title="Cumulative false positives",
        x_title=AXIS,
        y_title="mistaken for one of the classes so far" + (" (% of mistakes)" if share else ""),
        guides=guides,
    )


def ordered_chart(
    series: Mapping[str, Sequence[Floats] | None],
    order: Integers,
    classes: Sequence[str],
    *,
    title: str,
    x_title: str,
    y_title: str,
    factor: float = 1.0,
    mark: Mark = "line",
) -> Chart:
    """One number a class, with the ends of its interval where there are some, in that order.

    Lines without values are left out, and the others keep their colours; numbers are shown times
    the factor.
    """
    lines, names = [], [classes[k] for k in order]
    for style, (name, parts) in enumerate(series.items()):
        if parts is not None:
            value, *ends = (factor * part[order] for part in parts)
            low, high = ends or (None, None)
            places = range(1, len(order) + 1)
            lines.append(Line(name, places, value, low, high, labels=names, mark=mark, style=style))
    return line_chart(lines, title=title, x_title=x_title, y_title=y_title, width=960)


def _mark(points: Integers) -> Mark:
    return "both" if len(points) <= _FEW_ENOUGH else "line"


def _along_the_tail(
    named: Mapping[str, Floats],
    counts: ArrayLike,
    classes: Sequence[str] | None,
    title: str,
    y_title: str,
    width: float = WIDTH,
    about: Mapping[str, str] | None = None,
    reference: Reference | None = None,
    beside: Sequence[Line] = (),
) -> Chart:
    """Series of one number a class above the counts; NaN is a gap, `about` ends their names."""
    tail, lines = tail_of(counts, classes), list(beside)
    for style, (name, values) in enumerate(named.items()):
        line = partial(Line, name + (about or {}).get(name, ""), style=style)
        ordered, labelled = tail.along(values, name), partial(line, tail.places, labels=tail.names)
        if len(ordered) <= _FEW_ENOUGH:
            lines.append(labelled(y=ordered, mark="both"))
            continue
        smooth = figure_curves.running_mean(ordered, max(5, len(ordered) // 12))
        at = figure_curves.thinned(len(ordered), 120)
        lines += [labelled(y=ordered, mark="dots", faint=True), line(at + 1, smooth[at])]
    return _over_counts(
        lines,
        tail,
        title=title,
        y_title=y_title,
        width=width,
        reference=reference,
    )


def _over_counts(
    lines: Sequence[Line],
    tail: Tail,
    *,
    title: str,
    y_title: str,
    reference: Reference | None = None,
    width: float = WIDTH,
) -> Chart:
    """The lines above, the training counts below."""
    size = len(tail.order)
    pad = max(0.02 * size, 0.15)
    draw = partial(line_chart, x_range=(1 - pad, size + pad), y_room=_ROOM, width=width)
    upper = draw(lines, title=title, y_title=y_title, reference=reference)
    at = figure_curves.thinned(size, 300)
    counts = tail.positive_counts[at]
    floor = np.ones_like(counts)
    lower = draw(
        [Line("training samples", at + 1, counts, floor, counts, style=_GREY, faint=True)],
        title="Training samples",
        x_title=AXIS,
        y_title="training samples, by their logarithm",
        log_y=True,
        height=70,
    )
    return panels([upper, lower], title=title)
