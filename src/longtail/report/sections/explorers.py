"""The two explorers with what a reader must know to use them, and the estimated prior."""

from __future__ import annotations

import numpy as np

from longtail.core import Prior
from longtail.flows.judge import Judgement
from longtail.flows.samples import BeforeAfter
from longtail.flows.tau_path import MOST_SAMPLES
from longtail.report.charts.lines import Line, line_chart
from longtail.report.explorers import target_explorer, tau_explorer
from longtail.report.names import order_title
from longtail.report.page import Figure, Section


def tau_section(judgement: Judgement) -> Section | None:
    """The τ explorer, where there is one."""
    heading = "How far to move: τ"
    if len(judgement.samples.labels) > MOST_SAMPLES:
        text = (
            f"Of more than {MOST_SAMPLES:,} samples this page would become too large to explore τ: "
            "save the scores of some of them, and longtail report does."
        )
        return Section(heading=heading, paragraphs=[text])
    explorer = tau_explorer(judgement)
    if explorer is None:
        return None
    text = f"{_tau_in_words(judgement.samples)} Move the slider: every number is exact for that τ."
    return Section(
        heading=heading,
        paragraphs=[text],
        notes=[
            "A τ chosen on these samples looks better on them than it is. Choose it on "
            "validation samples, as longtail fix does, and only look here."
        ],
        explorer=explorer,
    )


def _tau_in_words(samples: BeforeAfter) -> str:
    """What τ is here; the result may be a move of the scores before, or another model."""
    is_move = samples.tau is not None
    carried = samples.before.carried if is_move else samples.after.carried
    if carried is None:
        return (
            "It is not declared what these logits carry. τ says how far they are moved as if they "
            "carried the training prior: 0 leaves them, 1 takes all of it out."
        )
    if carried.is_close(samples.target):
        return (
            "These logits carry the target already, so that τ = 0 should be best. τ says how much "
            "of the training prior is taken out beyond that; below 0 it is put back in."
        )
    text = (
        "τ says how far the logits are moved from the prior they carry towards the target: 0 "
        "leaves them, 1 moves them all the way, more goes beyond it."
    )
    if not is_move or not samples.is_changed:
        return text
    text += (
        f" The slider starts at the result, τ = {samples.tau:.3g}, and moves its logits, "
        "calibrated as they are: there its numbers are those of the first table."
    )
    if samples.is_cross_fitted:
        text += (
            " Each fifth of the samples was moved by the τ that the others chose, so the slider "
            "moves all of them by as much from where they are."
        )
    return text


def target_section(judgement: Judgement) -> Section | None:
    """The target explorer and the estimated prior, where it is known what the logits carry."""
    explorer = target_explorer(judgement)
    if explorer is None:
        return None
    return Section(
        heading="Where labels are distributed differently",
        paragraphs=[
            "Move the slider from the prior that the model learned, through all classes alike, "
            "to its reverse. Scores that are left as they are fit one prior only; scores that "
            "carry what is declared can be moved to any, and are as good there as they can be."
        ],
        figures=_estimated(judgement),
        notes=[
            "A sample counts as much as its class does under the prior, so the same samples "
            "speak about all of them. This assumes that only the frequencies of the classes "
            "change, not what they look like."
        ],
        explorer=explorer,
    )


def _estimated(judgement: Judgement) -> list[Figure]:
    estimate, samples = judgement.estimate, judgement.samples
    if estimate is None or samples.source is None:
        return []
    order, places = samples.order, range(1, samples.num_classes + 1)
    names = [samples.classes[k] for k in order]

    def shares(probs: object) -> list[float]:
        percent: list[float] = (100 * np.asarray(probs)[order]).tolist()
        return percent

    own = Prior.of(samples.label_counts, zeros="keep")
    chart = line_chart(
        [
            Line(
                "estimated without labels",
                places,
                shares(estimate.prior),
                shares(estimate.low),
                shares(estimate.high),
                labels=names,
            ),
            Line("the labels of these samples", places, shares(own), labels=names),
            Line("before", places, shares(samples.source), labels=names),
        ],
        title="Estimated prior",
        x_title=order_title(samples),
        y_title="share of the samples (%)",
        width=960,
    )
    caption = (
        "The prior of these samples, estimated from the scores alone with its 95 % interval, "
        "beside what their labels say. "
    ) + (
        "Calibrated on the validation scores."
        if samples.validation is not None
        else "Without validation scores the model could not be calibrated first, so what is wrong "
        "with a class's confidence shows as a change of its share."
    )
    return [Figure(chart, caption, wide=True)]
