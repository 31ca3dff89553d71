"""The page on scores: the first screen, then a section for each question, most of them here."""

from collections.abc import Sequence

from longtail.flows.judge import Judgement
from longtail.flows.label_profile import Profile
from longtail.report.charts.heat import heat_chart
from longtail.report.charts.scale import readable
from longtail.report.figures import (
    class_accuracy_chart,
    false_positives_chart,
    margin_cdf_chart,
    reliability_chart,
)
from longtail.report.figures.classes import ordered_chart
from longtail.report.names import order_title
from longtail.report.page import Column, Figure, Footer, Page, Section, Table
from longtail.report.pages.first_screen import (
    REMEDY,
    alone_in_words,
    first_table,
    gain_in_words,
    next_step,
    warning,
)
from longtail.report.pages.priors import carried_section, target_section, tau_section


def scores_page(
    judgement: Judgement,
    footer: Footer,
    *,
    title: str = "longtail report",
    done: str | None = None,
    sections: Sequence[Section] = (),
    written: bool | None = None,
    remedy: str = REMEDY,
) -> Page:
    """A page about scores, before and after something was done to them.

    Args:
        judgement: What is to be said of them.
        footer: Where the page comes from.
        title: What it is called.
        done: What was done, in one sentence; by default where the scores are from.
        sections: What only this report has; they stand last.
        written: Whether a file holds the scores after; by default those that are no mere move.
        remedy: What helps where the result is worse.
    """
    done = _source(judgement) if done is None else done
    written = judgement.samples.tau is None if written is None else written
    is_changed = judgement.samples.is_changed
    outcome = gain_in_words(judgement) if is_changed else alone_in_words(judgement)
    # In the order in which they answer questions.
    made = [
        by_class_section(judgement),
        tau_section(judgement),
        target_section(judgement),
        calibration_section(judgement),
        carried_section(judgement),
        margins_section(judgement),
        mistakes_section(judgement),
    ]
    return Page(
        title=title,
        summary=" ".join(filter(None, (done, samples_in_words(judgement), outcome))),
        sections=[*(section for section in made if section is not None), *sections],
        footer=footer,
        lead=first_table(judgement),
        next_step=next_step(judgement, written, remedy),
        warning=warning(judgement.sanity, remedy),
    )


def _source(judgement: Judgement) -> str:
    samples, done = judgement.samples, f"Scores of {judgement.scores_name}"
    if samples.is_changed and samples.tau is None:
        return f"{done}, before and after."
    moved = ", as they are and moved from the prior they carry to the target"
    return f"{done}{moved if samples.is_changed else ''}."


def samples_in_words(judgement: Judgement) -> str:
    """What the report is on, and what of it counts for nothing."""
    samples, total = judgement.samples, judgement.num_samples
    split = f"{samples.before.split} " if samples.before.split else ""
    tail = _tail(judgement.train)
    sentences = [f"On {total:,} {split}samples of {samples.num_classes:,} classes{tail}."]
    if absent := judgement.absent_classes:
        sentences.append(f"Classes without a sample here ({absent:,}) count for nothing.")
    if total > len(samples.labels):
        sentences.append(f"Below the table, {len(samples.labels):,} of the samples are looked at.")
    return " ".join(sentences)


def _tail(train: Profile | None) -> str:
    """How uneven the training counts were, where they are known."""
    if train is None:
        return ""
    none = f"; {len(train.absent):,} had none" if train.absent else ""
    if train.imbalance_ratio == 1:
        those = "those that had any" if train.absent else "all"
        return f"; in training {those} had equally many samples{none}"
    times = readable(train.imbalance_ratio, 3)
    return f"; in training the largest had {times} times the samples of the smallest{none}"


def by_class_section(judgement: Judgement) -> Section:
    """Class counts and the accuracy of each class by frequency."""
    samples = judgement.samples
    if samples.counts is None:
        caption = "Each dot is a class."
        chart = ordered_chart(
            {name: [recalls] for name, recalls in judgement.recalls.items()},
            samples.order,
            samples.classes,
            title="Accuracy by class",
            x_title=order_title(samples),
            y_title="accuracy (%)",
            factor=100,
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
    weights = "Every sample counts once"
    if judgement.target is not None:
        weights = "Samples count as their classes do under the target"
    caption = f"{weights}. {bins} bins are drawn; the ECE has 20, as in the papers."
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
