"""Accuracy along the tail, calibration, and where the mistakes fall: pictures of both scores."""

from __future__ import annotations

from longtail.core.tensors import as_tensor
from longtail.metrics import recalls
from longtail.report.charts.chart import Chart
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures.class_accuracy import class_accuracy_chart
from longtail.report.figures.false_positives import false_positives_chart
from longtail.report.figures.margins import margin_cdf_chart
from longtail.report.figures.reliability import bins_for, reliability_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section
from longtail.report.sections.groups import groups_of


def by_class_section(judged: Judged) -> Section:
    """Class counts and the accuracy of each class by frequency."""
    if judged.counts is None:
        chart, caption = _dots(judged), "Each dot is a class."
    else:
        chart = class_accuracy_chart(judged.sides, judged.counts, width=960)
        caption = (
            "Each mark is a class, above its training samples; of more than 30 classes the lines "
            "are running means, and the marks are pale."
        )
    return Section(
        heading="Classes from frequent to rare", figures=[Figure(chart, caption, wide=True)]
    )


def calibration_section(judged: Judged) -> Section:
    """The reliability diagram."""
    chart = reliability_chart(judged.sides, judged.target)
    caption = (
        f"Samples count as their classes do under the target. {bins_for(len(judged.labels))} bins "
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
    both = judged.sides
    return Section(
        heading="Where mistakes fall, and how clear decisions are",
        figures=[
            Figure(
                false_positives_chart(both, judged.frequencies),
                "Mistakes that fall on the most frequent classes, added up. A line above the "
                "dotted one of its colour favours frequent classes.",
            ),
            Figure(
                margin_cdf_chart(both, judged.frequencies, groups_of(judged)),
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
