"""What the logits are declared to carry beside what their labels say they carry."""

from __future__ import annotations

import math

import torch

from longtail.core import Prior, measure_carried
from longtail.core.arrays import as_tensor
from longtail.core.retarget import prior_offset
from longtail.report.charts.lines import Line, line_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section

_APART = 0.5  # mean distance of the logarithms from which on declared and measured disagree


def carried_section(judged: Judged) -> Section:
    """Declared and measured carried prior of the scores before."""
    declared = judged.before.carried
    measured, why = _measured(judged)
    priors = {"declared": declared, "measured on these labels": measured, "target": judged.target}
    lines = [
        _line(name, prior, judged, style)
        for style, (name, prior) in enumerate(priors.items())
        if prior is not None
    ]
    chart = line_chart(
        lines,
        title="Carried prior, declared and measured",
        x_title=judged.order_title,
        y_title="log of the share over that of uniform",
        width=960,
    )
    return Section(
        heading="What the logits carry",
        paragraphs=[_verdict(declared, measured, why)],
        figures=[Figure(chart, "0 is the share under the uniform prior; a unit is e times.", True)],
        notes=[
            "Measured: the offsets that best explain the labels, one a class. Of a class with few "
            "samples here, or one told apart almost perfectly, they are rough."
        ]
        if measured is not None
        else [],
    )


def _measured(judged: Judged) -> tuple[Prior | None, str]:
    logits = as_tensor(judged.before.logits)[judged.some]
    try:
        return measure_carried(logits, judged.labels[judged.some]), ""
    except (ValueError, RuntimeError) as error:
        return None, str(error)


def _verdict(declared: Prior | None, measured: Prior | None, why: str) -> str:
    if measured is None:
        return f"What the logits carry could not be measured here: {why}."
    if declared is None:
        return (
            "It is not declared what these logits carry. Measured on these labels it is the line "
            "below; on held-out scores longtail fix --carried measure does the same and uses it."
        )
    apart = float(prior_offset(declared, measured).abs().mean())
    if apart < _APART:
        return (
            f"Declared and measured agree: on average over the classes their logarithms differ by "
            f"{apart:.2f}, a factor of {math.exp(apart):.2f}."
        )
    return (
        f"Declared and measured disagree: on average over the classes by a factor of "
        f"{math.exp(apart):.2f}. The model may be badly calibrated, trained with another sampler "
        "or weights than declared, or adjusted already."
    )


def _line(name: str, prior: Prior, judged: Judged, style: int) -> Line:
    logs = (prior.log + math.log(judged.num_classes))[judged.order]
    logs = torch.where(logs.isfinite(), logs, math.nan)
    names = [judged.classes[k] for k in judged.order.tolist()]
    return Line(name, range(1, len(logs) + 1), logs.tolist(), labels=names, style=style)
