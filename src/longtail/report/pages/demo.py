"""The demo in words, tables and a page: a report on scores of pictures, and the two problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING

from longtail.report.charts.bars import Bars, bar_chart
from longtail.report.figures.classes import GROUPS
from longtail.report.names import percent
from longtail.report.page import Column, Figure, Footer, Page, Section, Table
from longtail.report.pages.first_screen import gain_in_words
from longtail.report.pages.scores import scores_page
from longtail.report.pages.synthetic import gaussian_figures

if TYPE_CHECKING:
    from longtail.flows.demo import DemoResult, FeatureScores
    from longtail.flows.two_gaussians import GaussianRow, TwoGaussians

_KEYS = ("balanced_accuracy", *GROUPS, "accuracy")


def demo_page(demo: DemoResult, footer: Footer) -> Page:
    """The page of `longtail demo`: the report on the pictures first, then the plain problem."""
    page = scores_page(demo.judgement, footer, title="longtail demo")
    return replace(
        page,
        summary=(
            "A classifier that saw 300 pictures of one class and 3 of another favours the frequent "
            "one: its logits carry the label prior of its training set. Logit adjustment takes "
            "that prior out, in the loss or after training. Here on pictures of 101 classes: "
            f"{gain_in_words(demo.judgement)}"
        ),
        next_step=(
            "Try it on your own model, without training it again. longtail audit LABELS says how "
            "long your tail is; longtail fix SCORES --kind logits --counts COUNTS -o OUT adjusts "
            "the scores of your model on validation samples, and writes a page like this one about "
            "them. Say --kind probs if your model gives probabilities."
        ),
        sections=[_caltech_section(demo), *page.sections, _gaussian_section(demo.gaussians)],
    )


def gaussian_rows(both: TwoGaussians) -> list[list[tuple[str, ...]]]:
    """For a terminal: the Bayes error, the losses and the corrections, in three groups."""

    def text(row: GaussianRow) -> tuple[str, ...]:
        sampled = "" if row.sampled is None else "{:.2f} ± {:.2f}".format(*row.sampled)
        return row.method, "{:.3f} ± {:.3f}".format(*row.exact), sampled, f"{row.above_bayes:+.3f}"

    bayes = ("Bayes", f"{both.bayes:.3f}", "", "")
    return [[bayes], [*map(text, both.losses)], [*map(text, both.corrections)]]


def caltech_rows(methods: Sequence[FeatureScores]) -> list[tuple[str, ...]]:
    """For a terminal: name, weight decay, and accuracies in percent."""
    return [
        (each.name, f"{each.weight_decay:g}", *(percent(each.metrics[key]) for key in _KEYS))
        for each in methods
    ]


def gain_and_cost(demo: DemoResult) -> str:
    """What the logit-adjusted loss gains on the pictures, and what becomes of probabilities."""
    losses, errors = demo.change("nll"), demo.change("ece")
    return (
        f"The logit-adjusted loss gains {100 * demo.gain:.1f} points of balanced accuracy. Its "
        f"probabilities, on the samples as they are: the log-loss goes from {losses[0]:.3f} to "
        f"{losses[1]:.3f}, the calibration error from {100 * errors[0]:.1f} to "
        f"{100 * errors[1]:.1f} %."
    )


def _gaussian_section(both: TwoGaussians) -> Section:
    bayes, trials = both.bayes, both.trials
    return Section(
        heading="Two Gaussians, 5 % positives",
        paragraphs=[
            "Two classes are drawn from Gaussians around (1, 1) and (−1, −1). The separator with "
            f"the least balanced error passes through the origin; its error is {bayes:.3f} %. "
            f"Over {trials} trials of 10,000 training and 10,000 test samples, only logit "
            "adjustment finds it: the adaptive and the equalised margin are not consistent for "
            "the balanced error, and weight normalisation gets there at no τ."
        ],
        table=Table(
            columns=[
                Column("method"),
                Column("balanced error, closed form", "%", digits=3),
                Column("on the test samples", "%"),
                Column("above Bayes", "points", digits=3, best="low"),
            ],
            rows=[
                ["Bayes", f"{bayes:.3f}", "", ""],
                *(
                    [row.method, row.exact, row.sampled, row.above_bayes]
                    for row in (*both.losses, *both.corrections)
                ),
            ],
            caption=(
                f"Mean ± standard deviation over {trials} trials. The last three correct ERM "
                "afterwards, each at the τ that is best for it."
            ),
        ),
        figures=gaussian_figures(both),
        notes=[
            "The closed form is the exact error of each learned separator; the sampled one adds "
            "the noise of a test set with about 500 positives.",
            "The rows of the classifier start independently. From a zero start they stay opposite, "
            "their norms equal, and dividing by ‖w‖ changes no decision.",
        ],
    )


def _caltech_section(demo: DemoResult) -> Section:
    names = (key.replace("_", " ") for key in _KEYS)
    accuracies = [Column(name, "%", digits=1, best="high") for name in names]
    return Section(
        heading="Caltech-101 features, 300 to 3 images a class",
        paragraphs=[
            "A linear layer on frozen features of 101 classes, each method at its own weight "
            "decay, that of the least log-loss by cross-validation on the training part. "
            f"{gain_and_cost(demo)} The gain over cross-entropy is mostly in the classes with few "
            "images, and is paid for with a little on those with many.",
            "The problem is convex and the bias is not decayed, so adjusting in the loss and "
            "adjusting afterwards have the same minimum and agree closely. In a deep network they "
            "need not.",
        ],
        table=Table(
            columns=[Column("method"), Column("weight decay"), *accuracies],
            rows=[
                [each.name, f"{each.weight_decay:g}", *(_percent(each, key) for key in _KEYS)]
                for each in demo.caltech
            ],
            caption="Test part. Many: over 100 training images; few: under 20.",
        ),
        figures=_caltech_figures(demo.caltech),
        notes=[
            "Caltech-101: Fei-Fei Li, Marco Andreetto, Marc'Aurelio Ranzato, Pietro Perona; "
            "CC BY 4.0. The features are derived from the images; see ATTRIBUTION.md in the "
            "package.",
            "Accuracy is over the test part as it is, in which classes have 10 to 266 images.",
        ],
    )


def _caltech_figures(methods: Sequence[FeatureScores]) -> list[Figure]:
    bars = [Bars(each.name, [_percent(each, group) for group in GROUPS]) for each in methods]
    chart = bar_chart(GROUPS, bars, title="Accuracy by group", y_title="accuracy (%)", width=960)
    return [Figure(chart, "Mean accuracy of the classes in each group.", wide=True)]


def _percent(method: FeatureScores, key: str) -> float:
    """NaN where there is none: a bar of zero would say all wrong."""
    value = method.metrics[key]
    return nan if value is None else 100 * value
