"""The two explorers with what a reader must know to use them, and the estimated prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longtail.core import Prior
from longtail.core.tensors import as_tensor
from longtail.report.charts.lines import Line, line_chart
from longtail.report.explorers.target import target_explorer
from longtail.report.explorers.tau import MOST_SAMPLES, tau_explorer
from longtail.report.judged import Judged, shown
from longtail.report.page import Figure, Section
from longtail.shift import PriorEstimate, estimate_prior


def tau_section(judged: Judged) -> Section | None:
    """The τ explorer, where there is one."""
    heading, explorer = "How far to move: τ", tau_explorer(judged)
    if len(judged.labels) > MOST_SAMPLES:
        said = (
            f"Of more than {MOST_SAMPLES:,} samples this page would become too large to explore τ: "
            "save the scores of some of them, and longtail report does."
        )
        return Section(heading=heading, paragraphs=[said])
    if explorer is None:
        return None
    return Section(
        heading=heading,
        paragraphs=[f"{_tau_in_words(judged)} Move the slider: every number is exact for that τ."],
        notes=[
            "A τ chosen on these samples looks better on them than it is. Choose it on "
            "held-out samples, as longtail fix does, and only look here."
        ],
        explorer=explorer,
    )


def _tau_in_words(judged: Judged) -> str:
    """What τ is here; the result may be a move of the scores before, or another model."""
    is_move = judged.tau is not None
    carried = judged.before.carried if is_move else judged.after.carried
    if carried is None:
        return (
            "It is not declared what these logits carry. τ says how far they are moved as if they "
            "carried the training prior: 0 leaves them, 1 takes all of it out."
        )
    if carried.is_close(judged.target):
        return (
            "These logits carry the target already, so that τ = 0 should be best. τ says how much "
            "of the training prior is taken out beyond that; below 0 it is put back in."
        )
    said = (
        "τ says how far the logits are moved from the prior they carry towards the target: 0 "
        "leaves them, 1 moves them all the way, more goes beyond it."
    )
    if not is_move or not judged.is_changed:
        return said
    said += (
        f" The slider starts at the result, τ = {judged.tau:.3g}, and moves its logits, calibrated "
        "as they are: there its numbers are those of the first table."
    )
    if judged.is_cross_fitted:
        said += (
            " Each fifth of the samples was moved by the τ that the others chose, so the slider "
            "moves all of them by as much from where they are."
        )
    return said


def target_section(judged: Judged) -> Section | None:
    """The target explorer and the estimated prior, where it is known what the logits carry."""
    explorer = target_explorer(judged)
    if explorer is None:
        return None
    return Section(
        heading="Where labels are distributed differently",
        paragraphs=[
            "Move the slider from the prior that the model learned, through all classes alike, "
            "to its reverse. Scores that are left as they are fit one prior only; scores that "
            "carry what is declared can be moved to any, and are as good there as they can be."
        ],
        figures=_estimated(judged),
        notes=[
            "A sample counts as much as its class does under the prior, so the same samples "
            "speak about all of them. This assumes that only the frequencies of the classes "
            "change, not what they look like."
        ],
        explorer=explorer,
    )


def _estimated(judged: Judged) -> list[Figure]:
    estimate = _estimate(judged)
    if estimate is None or judged.source is None:
        return []
    order, names = judged.order, [judged.classes[k] for k in judged.order.tolist()]
    places = range(1, len(order) + 1)
    low, high = (100 * np.asarray(part)[order] for part in (estimate.low, estimate.high))
    shares = Prior.of(judged.label_counts, zeros="keep")
    lines = [
        Line(
            "estimated without labels",
            places,
            shown(estimate.prior, judged),
            low.tolist(),
            high.tolist(),
            labels=names,
        ),
        Line("the labels of these samples", places, shown(shares, judged), labels=names),
        Line("before", places, shown(judged.source, judged), labels=names),
    ]
    chart = line_chart(
        lines,
        title="Estimated prior",
        x_title=judged.order_title,
        y_title="share of the samples (%)",
        width=960,
    )
    caption = (
        "The prior of these samples, estimated from the scores alone with its 95 % interval, "
        "beside what their labels say. "
    ) + (
        "Calibrated on the validation scores."
        if judged.validation is not None
        else "Without validation scores the model could not be calibrated first, so what is wrong "
        "with a class's confidence shows as a change of its share."
    )
    return [Figure(chart, caption, wide=True)]


def _estimate(judged: Judged) -> PriorEstimate | None:
    logits = as_tensor(judged.before.logits)[judged.some]
    known = replace(judged.before, labels=None, split=None, counts=judged.counts)
    unlabelled = replace(known, logits=logits)
    held = judged.validation
    if held is not None and held.carried is None:
        held = None if judged.before.carried is None else replace(held, carried=unlabelled.carried)
    try:
        return estimate_prior(unlabelled, validation=held, resamples=20)
    except (ValueError, RuntimeError):
        return None
