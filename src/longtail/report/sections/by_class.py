"""Accuracy along the tail, calibration, and which classes are taken for which."""

from longtail.flows.judge import Judgement
from longtail.report.charts.heat import heat_chart
from longtail.report.figures import (
    class_accuracy_chart,
    false_positives_chart,
    margin_cdf_chart,
    reliability_chart,
)
from longtail.report.figures.tail import ordered_chart
from longtail.report.names import order_title
from longtail.report.page import Figure, Section
from longtail.report.table import Column, Table


def by_class_section(judgement: Judgement) -> Section:
    """Class counts and the accuracy of each class by frequency."""
    samples = judgement.samples
    if samples.counts is None:
        caption = "Each dot is a class."
        chart = ordered_chart(
            {name: [100 * recalls] for name, recalls in judgement.recalls.items()},
            samples.order,
            samples.classes,
            title="Accuracy by class",
            x_title=order_title(samples),
            y_title="accuracy (%)",
            mark="dots",
        )
    else:
        names, recalls = samples.classes, judgement.recalls
        chart = class_accuracy_chart(recalls, samples.counts, classes=names, width=960)
        caption = (
            "Each mark is a class, above its training samples; of more than 30 classes the lines "
            "are running means, and the marks are pale."
        )
    figures = [Figure(chart, caption, wide=True)]
    return Section(heading="Classes from frequent to rare", figures=figures)


def calibration_section(judgement: Judgement) -> Section:
    """The reliability diagram."""
    chart = reliability_chart(judgement.reliability, judgement.eces)
    bins = len(next(iter(judgement.reliability.values())).share)
    caption = (
        f"Samples count as their classes do under the target. {bins} bins are drawn; the ECE has "
        "20, as in the papers."
    )
    return Section(
        heading="Can the confidence be trusted?",
        paragraphs=[
            "Of the samples predicted with 80 % confidence, 80 % should be right: on the dotted "
            "line. Below it the model is surer than it should be."
        ],
        figures=[Figure(chart, caption)],
    )


def margins_section(judgement: Judgement) -> Section:
    """Where the mistakes fall, and how clearly samples are told apart."""
    samples = judgement.samples
    frequencies, groups = samples.frequencies, samples.groups
    return Section(
        heading="Where mistakes fall, and how clear decisions are",
        figures=[
            Figure(
                false_positives_chart(judgement.false_positives, frequencies),
                "Mistakes that fall on the most frequent classes, added up. A line above the "
                "dotted one of its colour favours frequent classes.",
            ),
            Figure(
                margin_cdf_chart(judgement.margins, samples.labels, frequencies, groups),
                "The margin of a sample is the logit of its class minus the highest other one: "
                "left of 0 it is wrong.",
            ),
        ],
    )


def mistakes_section(judgement: Judgement) -> Section:
    """Groups taken for groups, and the single mistakes that rare classes suffer most."""
    groups = list(judgement.samples.groups)
    # What is right stands apart, so a column of a group holds mistakes only.
    columns = ["right", *(f"wrong: {name.removesuffix('-shot')}" for name in groups)]
    figures = [
        Figure(
            heat_chart(
                groups,
                columns,
                (100 * shares).tolist(),
                title=f"Groups taken for groups, {name}",
                row_title="true class",
                column_title="taken for",
                value_title="share of the samples (%)",
                low=0,
                high=100,
            ),
            f"{name[:1].upper()}{name[1:]}: what becomes of the samples of each group, every class "
            "counting the same.",
        )
        for name, shares in judgement.mistakes.confusions.items()
    ]
    return Section(
        heading="Which classes are taken for which", table=_pairs(judgement), figures=figures
    )


def _pairs(judgement: Judgement) -> Table | None:
    samples = judgement.samples
    if not judgement.mistakes.pairs:
        return None

    def named(k: int) -> str:
        trained = "" if samples.counts is None else f" ({int(samples.counts[k]):,} in training)"
        return f"{samples.classes[k]}{trained}"

    return Table(
        [
            Column("class of the rarer half"),
            Column("taken for"),
            Column("samples", digits=0),
            *(Column(name, "%", digits=1) for name in samples.sides),
        ],
        [
            [named(p.true), named(p.taken), p.samples, *(100 * share for share in p.shares)]
            for p in judgement.mistakes.pairs
        ],
        caption="What the rarer half of the classes loses most samples to "
        f"({samples.names[0]}), as shares of the class.",
    )
