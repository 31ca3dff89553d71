"""Classes along the tail: their counts, accuracy, mistakes, logits, offsets and weights.

And the accuracy of groups of them over the epochs.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from longtail.core.arrays import ArrayLike
from longtail.metrics import ClassLogits
from longtail.metrics.recall import geometric_means
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import WIDTH, Guide, Reference
from longtail.report.charts.lines import Line, Mark, line_chart
from longtail.report.figures.tail import (
    AXIS,
    Values,
    along,
    by_name,
    class_lines,
    floats,
    over_classes,
    tail_of,
)

GROUPS = ("many", "medium", "few")


def counts_chart(
    counts: Values, *, classes: Sequence[str] | None = None, many: int = 100, few: int = 20
) -> Chart:
    """How many samples each class has, from the most frequent to the rarest (EO fig. 1a).

    Of several sets under their names each is ordered by itself. Above `many` a class has many
    samples, below `few` it has few, by `shot_groups`.

    >>> counts_chart([500, 60, 7]).count('class="mark"')
    3
    """
    lines, longest, largest = [], 1, 1.0
    for name, each in by_name(counts, "samples").items():
        tail = tail_of(each, classes)
        shown = np.where(tail.counts > 0, tail.counts, np.nan)  # zero has no logarithm
        mark: Mark = "both" if len(shown) <= 30 else "line"
        lines.append(Line(name, tail.places, shown, labels=tail.names, mark=mark))
        longest, largest = max(longest, len(shown)), max(largest, tail.counts.max(initial=1.0))
    edges = [
        Guide(f"{word} {level}", [1, longest], [level, level])
        for word, level in (("many: above", many), ("few: below", few))
        if level <= largest
    ]
    return line_chart(
        lines,
        title="Samples of each class",
        x_title=AXIS,
        y_title="samples, by their logarithm",
        guides=edges,
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

    The legend has the geometric mean of the recalls, a recall of zero counting as 0.001.

    Recalls are those of `metrics.recalls`, or several such under their names.

    >>> "geometric mean 70.7 %" in class_accuracy_chart([1.0, 0.5], counts=[90, 10])
    True
    """
    tail = tail_of(counts, classes)
    lines: list[Line] = []
    for style, (name, each) in enumerate(by_name(recalls).items()):
        along(tail, each, name)
        mean = float(geometric_means(each[~np.isnan(each)]))
        legend = f"{name}, geometric mean {100 * mean:.1f} %"
        lines += class_lines(legend, 100 * each, tail, style)
    return over_classes(lines, tail, title="Accuracy by class", y_title="accuracy (%)", width=width)


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
    at = np.unique(np.linspace(0, size, min(size, 300) + 1).astype(int))
    lines, guides = [], []
    for style, (name, each) in enumerate(named.items()):
        sums = np.concatenate([[0.0], np.cumsum(along(tail, each, name))])
        if share:
            sums = 100 * sums / max(sums[-1], 1)
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


def class_logits_chart(
    logits: ClassLogits, counts: ArrayLike, *, classes: Sequence[str] | None = None
) -> Chart:
    """Mean logit of each class on its own samples and on the others, ± one standard deviation.

    For logits that carry the uniform prior and classes that can be told apart, positives tend to
    log C (LADE eq. 21, fig. 3): the dotted line.

    Logits are those of `metrics.class_logits`.

    >>> from longtail.metrics import class_logits
    >>> made = class_logits([[3.0, 1.0], [1.0, 2.0], [5.0, 0.0]], [0, 1, 0])
    >>> "positives starts at 4 and ends at 2" in class_logits_chart(made, counts=[90, 10])
    True
    """
    tail = tail_of(counts, classes)
    lines = []
    for name, at in (("positives", 0), ("negatives", 2)):
        mean, spread = (along(tail, floats(part), name) for part in logits[at : at + 2])
        lines.append(Line(name, tail.places, mean, mean - spread, mean + spread, labels=tail.names))
    level = math.log(len(tail.order))
    return over_classes(
        lines,
        tail,
        title="Logits of positives and negatives by class",
        y_title="logit of the class, ± one standard deviation",
        reference=Reference(level, f"log C = {level:.2f}"),
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
    tail = tail_of(counts, classes)
    lines: list[Line] = []
    for style, (name, each) in enumerate(by_name(offsets, "offset").items()):
        lines += class_lines(name, each, tail, style)
    return over_classes(lines, tail, title="Offsets of the classes", y_title="offset")


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
        norms = np.stack([along(tail_of(counts), floats(each), name) for each, counts in several])
        middle, spread = norms.mean(axis=0), norms.std(axis=0)
        low, high = (middle - spread, middle + spread) if len(norms) > 1 else (None, None)
        lines.append(Line(name, range(1, len(middle) + 1), middle, low, high))
    title = "Norms of the weights of each class"
    return line_chart(lines, title=title, x_title=AXIS, y_title="norm of its weights")


def group_curves_chart(log: Sequence[Mapping[str, float | None]], title: str = "") -> Chart:
    """Validation accuracy of many-, medium- and few-shot classes after each epoch (NCM fig. 4).

    The log has `epoch`, `val_many`, `val_medium`, `val_few` of each epoch; None where unknown.

    >>> rows = [{"epoch": 1.0, "val_many": 0.5}, {"epoch": 2.0, "val_many": 0.75}]
    >>> "many-shot starts at 50 and ends at 75" in group_curves_chart(rows)
    True
    """
    rows = [row for row in log if any(row.get(f"val_{name}") is not None for name in GROUPS)]
    if not rows:
        raise ValueError(
            "the log has no accuracy of many, medium and few: train with a validation part, "
            "data.validation_share=0.1"
        )
    lines = []
    for name in GROUPS:
        points = [(row["epoch"], row.get(f"val_{name}")) for row in rows]
        accuracies = {
            at: 100 * value for at, value in points if at is not None and value is not None
        }
        if accuracies:
            lines.append(Line(f"{name}-shot", list(accuracies), list(accuracies.values())))
    return line_chart(
        lines,
        title=title or "Accuracy of groups of classes over the epochs",
        x_title="epoch",
        y_title="validation accuracy (%)",
    )
