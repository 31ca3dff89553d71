"""The pictures of the two synthetic problems: LA figure 2 and ELM figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.report.charts.frame import Reference
from longtail.report.charts.lines import Line, line_chart
from longtail.report.charts.plane import Points, Separator, plane_chart
from longtail.report.charts.rows import Strip, strip_chart
from longtail.report.page import Figure

if TYPE_CHECKING:
    from longtail.flows.two_gaussians import TwoGaussians
    from longtail.flows.two_moons import TwoMoons

_SHOWN_POINTS = 600  # of the first trial: more would only blacken the figure


def gaussian_figures(both: TwoGaussians) -> list[Figure]:
    """Errors of the losses, the first trial's separators, and corrections at every τ."""
    features, labels = both.features[:_SHOWN_POINTS], both.labels[:_SHOWN_POINTS]
    least, error = (
        Reference(both.bayes, f"Bayes {both.bayes:.3f} %"),
        "balanced error, closed form (%)",
    )
    strips = strip_chart(
        [Strip(name, errors.tolist()) for name, errors in both.exact.items()],
        title="Balanced error of each loss",
        value_title=error,
        reference=least,
    )
    separators = [Separator(name, *abc.tolist()) for name, abc in both.separators.items()]
    plane = plane_chart(
        [
            Points(name, *features[labels == label].T.tolist())
            for label, name in enumerate(("negatives", "positives"))
        ],
        [*separators, Separator("Bayes", 1.0, 1.0, 0.0)],
        title="Learned separators",
        x_title="x₁",
        y_title="x₂",
    )
    curves = line_chart(
        [Line(name, both.taus, *curve) for name, curve in both.curves.items()],
        title="Post-hoc corrections of ERM",
        x_title="τ",
        y_title=error,
        reference=least,
        width=960,
    )
    middle = f"The first trial, {len(features)} of its training samples (LA figure 2, middle)."
    right = "Mean over the trials, with a band of one standard deviation (LA figure 2, right)."
    return [
        Figure(strips, "Each dot is a trial (LA figure 2, left)."),
        Figure(plane, middle),
        Figure(curves, right, wide=True),
    ]


def moons_figures(moons: TwoMoons) -> list[Figure]:
    """The first trial's embeddings of each loss, and how compact they are in every trial."""
    labels = moons.labels[:_SHOWN_POINTS]
    planes = {
        name: plane_chart(
            [
                Points(part, *embedded[:_SHOWN_POINTS][labels == label].T.tolist())
                for label, part in enumerate(("head", "tail"))
            ],
            [Separator("boundary", *moons.separators[name].tolist())],
            title=f"Embeddings of test samples, {name}",
            x_title="Φ₁",
            y_title="Φ₂",
        )
        for name, embedded in moons.embeddings.items()
    }
    strips = strip_chart(
        [Strip(name, values.tolist()) for name, values in moons.cdnv.items()],
        title="Class-distance normalised variance",
        value_title="variance within classes over squared distance between them",
    )
    first = f"the first of {moons.trials} trials, {len(labels)} test samples (ELM figure 1)."
    return [
        *(Figure(plane, f"{name}: {first}") for name, plane in planes.items()),
        Figure(strips, "Each dot is a trial; less is more compact."),
    ]
