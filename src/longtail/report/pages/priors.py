"""Priors on the page: how far to move, where to, and what the logits carry."""

from collections.abc import Sequence

from longtail.core.arrays import as_numpy
from longtail.flows.carried_check import Agreement, CarriedCheck
from longtail.flows.judge import Judgement
from longtail.flows.paths import MOST_SAMPLES
from longtail.flows.samples import BeforeAfter, Standing
from longtail.flows.shifted_sets import ShiftedSet
from longtail.report.explorers import target_explorer, tau_explorer
from longtail.report.figures.classes import ordered_chart
from longtail.report.names import order_title, percent, with_interval
from longtail.report.page import Column, Figure, Section, Table


def tau_section(judgement: Judgement) -> Section | None:
    """The τ explorer, where there is one."""
    heading = "How far to move: τ"
    if judgement.is_too_large_for_tau:
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
    if samples.tau_standing is Standing.UNDECLARED:
        return (
            "It is not declared what these logits carry. τ says how far they are moved as if they "
            "carried the training prior: 0 leaves them, 1 takes all of it out."
        )
    if samples.tau_standing is Standing.AT_TARGET:
        return (
            "These logits carry the target already, so that τ = 0 should be best. τ says how much "
            "of the training prior is taken out beyond that; below 0 it is put back in."
        )
    text = (
        "τ says how far the logits are moved from the prior they carry towards the target: 0 "
        "leaves them, 1 moves them all the way, more goes beyond it."
    )
    if not samples.is_move:
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
            "change, not what they look like.",
            *_not_estimated(judgement),
        ],
        explorer=explorer,
    )


def _not_estimated(judgement: Judgement) -> list[str]:
    if not judgement.estimate_problem:
        return []
    return [f"The prior of these samples could not be estimated: {judgement.estimate_problem}."]


def _estimated(judgement: Judgement) -> list[Figure]:
    estimate, samples = judgement.estimate, judgement.samples
    if estimate is None or samples.source is None:
        return []
    ends = [as_numpy(end) for end in (estimate.low, estimate.high)]
    chart = ordered_chart(
        {
            "estimated without labels": [estimate.prior.probs, *ends],
            "the labels of these samples": [samples.label_shares],
            "before": [samples.source.probs],
        },
        samples.order,
        samples.classes,
        title="Estimated prior",
        x_title=order_title(samples),
        y_title="share of the samples (%)",
        factor=100,
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


def shifted_sections(sets: Sequence[ShiftedSet]) -> list[Section]:
    """Accuracy on shifted test sets; none where the test part has no such sets."""
    if not sets:
        return []
    names = ("labels", "samples", "as they are", "known prior", "estimated prior", "estimate off")
    rows = [
        [
            f"{each.direction} {each.ratio}",
            f"{each.samples:,}",
            *(
                "none" if accuracy is None else with_interval(accuracy)
                for accuracy in (each.as_trained, each.known, each.estimated)
            ),
            percent(each.distance),
        ]
        for each in sets
    ]
    caption = "Accuracy in %, with 95 % intervals (as LADE tables 6 and 9)."
    unknown = "It is not known what these logits carry, so they cannot be moved to another prior."
    return [
        Section(
            heading="If the labels shift",
            paragraphs=[
                "The same scores where the largest class is 50, 25, 10, 5 or 2 times as frequent "
                "as the smallest, in the order of the training counts (forward) or the reverse "
                "(backward): left as they are, moved to that prior where it is known (PC Softmax), "
                "and moved to an estimate of it from unlabelled samples."
            ],
            table=Table([Column(name) for name in names], rows, caption),
            notes=[
                "Every test sample counts as its class does under the shifted prior. The estimate "
                "is from the samples of a set that was drawn so; off is its total variation from "
                "the true prior, in %.",
                *([unknown] if sets[0].known is None else []),
            ],
        )
    ]


def carried_section(judgement: Judgement) -> Section:
    """Declared and measured carried prior of the scores before."""
    check, samples = judgement.carried_check, judgement.samples
    names = {"measured": "measured on these labels"}
    logs = judgement.carried_logs.items()
    chart = ordered_chart(
        {names.get(key, key): None if each is None else [each] for key, each in logs},
        samples.order,
        samples.classes,
        title="Carried prior, declared and measured",
        x_title=order_title(samples),
        y_title="log of the share over that of uniform",
    )
    return Section(
        heading="What the logits carry",
        paragraphs=[_carried_in_words(check)],
        figures=[Figure(chart, "0 is the share under the uniform prior; a unit is e times.", True)],
        notes=[
            "Measured: the offsets that best explain the labels, one a class. Of a class with few "
            "samples here, or one told apart almost perfectly, they are rough."
        ]
        if check.measured is not None
        else [],
    )


def _carried_in_words(check: CarriedCheck) -> str:
    if check.agreement is Agreement.NOT_MEASURED:
        return f"What the logits carry could not be measured here: {check.problem}."
    if check.agreement is Agreement.NOT_DECLARED:
        return (
            "It is not declared what these logits carry. What the labels say is drawn below; on "
            "validation scores longtail fix --carried measure does the same and uses it."
        )
    factors = (
        f"a class differs by a factor of {check.factor:.2f} on average, where chance "
        f"alone gives about {check.chance_factor:.2f} with so many samples"
    )
    if check.agreement is Agreement.DISAGREE:
        return (
            f"Declared and measured disagree: {factors}. The model may be badly calibrated, "
            "trained with another sampler or weights than declared, or adjusted already."
        )
    if check.agreement is Agreement.AGREE:
        return f"Declared and measured agree as far as these samples can tell: {factors}."
    return (
        f"Declared and measured are near each other, but not the same: {factors}. A model that "
        "fits its training samples too closely departs so; calibration takes it back."
    )
