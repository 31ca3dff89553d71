"""What the logits are declared to carry beside what their labels say they carry."""

from __future__ import annotations

import math

import numpy as np

from longtail.core import Prior
from longtail.flows.carried_check import Agreement, CarriedCheck
from longtail.flows.judge import Judgement
from longtail.report.charts.lines import Line, line_chart
from longtail.report.names import order_title
from longtail.report.page import Figure, Section


def carried_section(judgement: Judgement) -> Section:
    """Declared and measured carried prior of the scores before."""
    check, samples = judgement.carried, judgement.samples
    names = [samples.classes[k] for k in samples.order]

    def line(name: str, prior: Prior, style: int) -> Line:
        logs = (np.asarray(prior.log) + math.log(samples.num_classes))[samples.order]
        logs = np.where(np.isfinite(logs), logs, math.nan)
        return Line(name, range(1, len(logs) + 1), logs.tolist(), labels=names, style=style)

    priors = {
        "declared": check.declared,
        "measured on these labels": check.measured,
        "target": samples.target,
    }
    chart = line_chart(
        [
            line(name, prior, style)
            for style, (name, prior) in enumerate(priors.items())
            if prior is not None
        ],
        title="Carried prior, declared and measured",
        x_title=order_title(samples),
        y_title="log of the share over that of uniform",
        width=960,
    )
    return Section(
        heading="What the logits carry",
        paragraphs=[_in_words(check)],
        figures=[Figure(chart, "0 is the share under the uniform prior; a unit is e times.", True)],
        notes=[
            "Measured: the offsets that best explain the labels, one a class. Of a class with few "
            "samples here, or one told apart almost perfectly, they are rough."
        ]
        if check.measured is not None
        else [],
    )


def _in_words(check: CarriedCheck) -> str:
    if check.agreement is Agreement.NOT_MEASURED:
        return f"What the logits carry could not be measured here: {check.problem}."
    if check.agreement is Agreement.NOT_DECLARED:
        return (
            "It is not declared what these logits carry. What the labels say is drawn below; on "
            "validation scores longtail fix --carried measure does the same and uses it."
        )
    factors = (
        f"a class differs by a factor of {math.exp(check.apart):.2f} on average, where chance "
        f"alone gives about {math.exp(check.chance):.2f} with so many samples"
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
