"""Accuracy along the tail, calibration, and where the mistakes fall: pictures of both scores."""

from __future__ import annotations

from longtail.core.tensors import as_tensor
from longtail.metrics import ece, false_positives, margins, recalls, reliability
from longtail.metrics.samples import weights_to
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures import (
    class_accuracy_chart,
    false_positives_chart,
    margin_cdf_chart,
    reliability_chart,
)
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section
from longtail.report.sections.groups import groups_of


def by_class_section(judged: Judged) -> Section:
    """Class counts and the accuracy of each class by frequency."""
    if judged.counts is None:
        chart, caption = _dots(judged), "Each dot is a class."
    else:
        found = {
            name: recalls(scores.logits, judged.labels) for name, scores in judged.sides.items()
        }
        chart = class_accuracy_chart(found, judged.counts, classes=judged.classes, width=960)
        caption = (
            "Each mark is a class, above its training samples; of more than 30 classes the lines "
            "are running means, and the marks are pale."
        )
    return Section(
        heading="Classes from frequent to rare", figures=[Figure(chart, caption, wide=True)]
    )


def calibration_section(judged: Judged) -> Section:
    """The reliability diagram."""
    bins = min(max(len(judged.labels) // 100, 5), 20)
    weights = weights_to(judged.target, judged.labels)
    sides = judged.sides.items()
    chart = reliability_chart(
        {n: reliability(s.logits, judged.labels, weights, bins) for n, s in sides},
        ece={n: ece(s.logits, judged.labels, weights) for n, s in sides},
    )
    caption = (
        f"Samples count as their classes do under the target. {bins} bins "
        "are drawn; the ECE has 20, as in the papers."
    )
    return Section(
        heading="Can the confidence be trusted?",
        paragraphs=[
            "Of the samples predicted with 80 % confidence, 80 % should be right: on the dotted "
            "line. Below it the model is surer than it should be."
        ],
        figures=[Figure(chart, caption)],
    )


def margins_section(judged: Judged) -> Section:
    """Where the mistakes fall, and how clearly samples are told apart."""
    labels, sides = judged.labels, judged.sides.items()
    wrong = {n: false_positives(s.logits, labels) for n, s in sides}
    clear = {n: margins(s.logits, labels) for n, s in sides}
    return Section(
        heading="Where mistakes fall, and how clear decisions are",
        figures=[
            Figure(
                false_positives_chart(wrong, judged.frequencies),
                "Mistakes that fall on the most frequent classes, added up. A line above the "
                "dotted one of its colour favours frequent classes.",
            ),
            Figure(
                margin_cdf_chart(clear, labels, judged.frequencies, groups_of(judged)),
                "The margin of a sample is the logit of its class minus the highest other one: "
                "left of 0 it is wrong.",
            ),
        ],
    )


def _dots(judged: Judged) -> Chart:
    """Accuracy by class where nobody knows the training counts."""
    names = [judged.classes[k] for k in judged.order.tolist()]
    lines = []
    for name, scores in judged.sides.items():
        found = as_tensor(recalls(scores.predict(), judged.labels, judged.num_classes))
        shown = (100 * found.cpu()[judged.order]).tolist()
        lines.append(Line(name, range(1, len(names) + 1), shown, labels=names, mark="dots"))
    return line_chart(
        lines,
        title="Accuracy by class",
        x_title=judged.order_title,
        y_title="accuracy (%)",
        width=960,
    )
