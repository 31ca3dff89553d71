"""The demo's report: the report on scores of pictures, and the two problems with their tables."""

import math
from dataclasses import replace

from torch import Tensor

from longtail.core import Prior
from longtail.flows.judge import judge
from longtail.recipes.caltech101 import Method
from longtail.recipes.demo import BAYES, Demo
from longtail.recipes.two_gaussians import TAUS, TwoGaussians
from longtail.report import (
    Bars,
    Column,
    Figure,
    Footer,
    Line,
    Page,
    Points,
    Reference,
    Section,
    Separator,
    Strip,
    Table,
    bar_chart,
    line_chart,
    plane_chart,
    scores_page,
    strip_chart,
)
from longtail.report.sections.verdict import gain_in_words

_SHOWN_POINTS = 600  # of the first trial's training set: more would only blacken the figure
_BAYES_LINE = Reference(BAYES, f"Bayes {BAYES:.3f} %")


def demo_page(demo: Demo, footer: Footer) -> Page:
    """The page of `longtail demo`: the report on the pictures first, then the plain problem."""
    before, after = demo.caltech[0], demo.caltech[-1]
    judgement = judge(
        before.scores,
        after.scores,
        Prior.uniform(before.scores.num_classes),
        names=(before.name, after.name),
    )
    page = scores_page(judgement, footer, title="longtail demo")
    return replace(
        page,
        summary=(
            "A classifier that saw 300 pictures of one class and 3 of another favours the frequent "
            "one: its logits carry the label prior of its training set. Logit adjustment takes "
            "that prior out, in the loss or after training. Here on pictures of 101 classes: "
            f"{gain_in_words(judgement)}"
        ),
        next_step=(
            "Try it on your own model, without training it again. longtail audit LABELS says how "
            "long your tail is; longtail fix SCORES --kind logits --counts COUNTS -o OUT adjusts "
            "the scores of your model on held-out samples, and writes a page like this one about "
            "them. Say --kind probs if your model gives probabilities."
        ),
        sections=[_caltech_section(demo), *page.sections, _gaussian_section(demo)],
    )


def _gaussian_section(demo: Demo) -> Section:
    trials = len(demo.gaussians.exact["ERM"])
    return Section(
        heading="Two Gaussians, 5 % positives",
        paragraphs=[
            "Two classes are drawn from Gaussians around (1, 1) and (−1, −1). The separator with "
            f"the least balanced error passes through the origin; its error is {BAYES:.3f} %. "
            f"Over {trials} trials of 10,000 training and 10,000 test samples, only logit "
            "adjustment finds it: the adaptive and the equalised margin are not consistent for "
            "the balanced error, and weight normalisation gets there at no τ.",
        ],
        table=Table(
            columns=[
                Column("method"),
                Column("balanced error, closed form", "%", digits=3),
                Column("on the test samples", "%"),
                Column("above Bayes", "points", digits=3, best="low"),
            ],
            rows=[
                ["Bayes", f"{BAYES:.3f}", "", ""],
                *(
                    [row.method, row.exact, row.sampled, row.above_bayes]
                    for row in (*demo.losses, *demo.corrections)
                ),
            ],
            caption=(
                f"Mean ± standard deviation over {trials} trials. The last three correct ERM "
                "afterwards, each at the τ that is best for it."
            ),
        ),
        figures=_gaussian_figures(demo.gaussians),
        notes=[
            "The closed form is the exact error of each learned separator; the sampled one adds "
            "the noise of a test set with about 500 positives.",
            "The rows of the classifier start independently. From a zero start they stay opposite, "
            "their norms equal, and dividing by ‖w‖ changes no decision.",
        ],
    )


def _gaussian_figures(both: TwoGaussians) -> list[Figure]:
    strips = [Strip(name, (100 * errors).tolist()) for name, errors in both.exact.items()]
    features, labels = (part[:_SHOWN_POINTS] for part in both.sample)
    points = [
        Points(name, *features[labels == label].T.tolist())
        for label, name in enumerate(("negatives", "positives"))
    ]
    separators = [Separator(name, *abc.tolist()) for name, abc in both.separators.items()]
    return [
        Figure(
            strip_chart(
                strips,
                title="Balanced error of each loss",
                value_title="balanced error, closed form (%)",
                reference=_BAYES_LINE,
            ),
            "Each dot is a trial (LA figure 2, left).",
        ),
        Figure(
            plane_chart(
                points,
                [*separators, Separator("Bayes", 1.0, 1.0, 0.0)],
                title="Learned separators",
                x_title="x₁",
                y_title="x₂",
            ),
            f"The first trial, {len(features)} of its training samples (LA figure 2, middle).",
        ),
        Figure(
            line_chart(
                [_tau_line(name, errors) for name, errors in both.by_tau.items()],
                title="Post-hoc corrections of ERM",
                x_title="τ",
                y_title="balanced error, closed form (%)",
                reference=_BAYES_LINE,
                width=960,
            ),
            "Mean over the trials, with a band of one standard deviation (LA figure 2, right).",
            wide=True,
        ),
    ]


def _tau_line(name: str, errors: Tensor) -> Line:
    mean, spread = 100 * errors.mean(dim=0), 100 * errors.std(dim=0)
    low, high = (mean - spread).tolist(), (mean + spread).tolist()
    return Line(name, TAUS.tolist(), mean.tolist(), low, high)


def _caltech_section(demo: Demo) -> Section:
    def percent(method: Method, key: str) -> float | None:
        value = method.metrics[key]
        return None if value is None else 100 * value

    keys = ("balanced_accuracy", "many", "medium", "few", "accuracy")
    return Section(
        heading="Caltech-101 features, 300 to 3 images a class",
        paragraphs=[
            "A linear layer on frozen features of 101 classes, each method at its own weight "
            "decay, that of the least log-loss by cross-validation on the training part. The "
            f"logit-adjusted loss gains {demo.gain:.1f} points of balanced accuracy over "
            "cross-entropy, most of it in the classes with few images, and pays with a little on "
            f"those with many. {demo.probabilities}",
            "The problem is convex and the bias is not decayed, so adjusting in the loss and "
            "adjusting afterwards have the same minimum and agree closely. In a deep network they "
            "need not.",
        ],
        table=Table(
            columns=[
                Column("method"),
                Column("weight decay"),
                *(
                    Column(name, "%", digits=1, best="high")
                    for name in ("balanced accuracy", "many", "medium", "few", "accuracy")
                ),
            ],
            rows=[
                [m.name, f"{m.weight_decay:g}", *(percent(m, key) for key in keys)]
                for m in demo.caltech
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


def _caltech_figures(methods: list[Method]) -> list[Figure]:
    groups = ("many", "medium", "few")
    bars = [Bars(m.name, [_percent(m.metrics[g]) for g in groups]) for m in methods]
    return [
        Figure(
            bar_chart(groups, bars, title="Accuracy by group", y_title="accuracy (%)", width=960),
            "Mean accuracy of the classes in each group.",
            wide=True,
        ),
    ]


def _percent(accuracy: float | None) -> float:
    return math.nan if accuracy is None else 100 * accuracy  # a bar of zero would say all wrong
