"""What the logits are declared to carry beside what their labels say they carry."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from longtail.core import Prior
from longtail.core.arrays import as_tensor
from longtail.core.retarget import prior_offset, retarget
from longtail.report.charts.lines import Line, line_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section

_APART = 0.5  # mean distance of the logarithms from which on declared and measured disagree


def carried_section(judged: Judged) -> Section:
    """Declared and measured carried prior of the scores before."""
    declared, measured = judged.before.carried, judged.measured
    priors = {"declared": declared, "measured on these labels": measured, "target": judged.target}
    lines = [
        _line(name, prior, judged, style)
        for style, (name, prior) in enumerate(priors.items())
        if isinstance(prior, Prior)
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
        paragraphs=[_verdict(judged)],
        figures=[Figure(chart, "0 is the share under the uniform prior; a unit is e times.", True)],
        notes=[
            "Measured: the offsets that best explain the labels, one a class. Of a class with few "
            "samples here, or one told apart almost perfectly, they are rough."
        ]
        if isinstance(measured, Prior)
        else [],
    )


def disagrees(judged: Judged) -> bool:
    """Whether the labels say, by more than chance, that the logits carry something else."""
    declared, measured = judged.before.carried, judged.measured
    if declared is None or isinstance(measured, str) or _apart(declared, measured) < _APART:
        return False
    return not _may_be_chance(judged, declared, measured)


def _apart(declared: Prior, measured: Prior) -> float:
    return float(prior_offset(declared, measured).abs().mean())


def _may_be_chance(judged: Judged, declared: Prior, measured: Prior) -> bool:
    """The likelihood ratio of the labels stays below the 95 % quantile of χ² with C − 1 freedoms.

    The held-out frequencies are taken as they are, so the ratio is rather too small than too large.
    """
    logits, labels = as_tensor(judged.before.logits)[judged.some].cpu(), judged.labels[judged.some]
    held = Prior.of(torch.bincount(labels, minlength=judged.num_classes))
    declared_loss, least_loss = (
        F.cross_entropy(retarget(logits.double(), carried, held), labels, reduction="sum")
        for carried in (declared, measured)
    )
    freedom = judged.num_classes - 1
    part = 2 / (9 * freedom)
    quantile = freedom * (1 - part + 1.645 * part**0.5) ** 3  # Wilson and Hilferty
    return bool(2 * (declared_loss - least_loss) < quantile)


def _verdict(judged: Judged) -> str:
    declared, measured = judged.before.carried, judged.measured
    if isinstance(measured, str):
        return f"What the logits carry could not be measured here: {measured}."
    if declared is None:
        return (
            "It is not declared what these logits carry. What the labels say is drawn below; on "
            "held-out scores longtail fix --carried measure does the same and uses it."
        )
    apart = _apart(declared, measured)
    factor = f"on average over the classes by a factor of {math.exp(apart):.2f}"
    if apart < _APART:
        return f"Declared and measured agree: they differ {factor}."
    if not disagrees(judged):
        return f"Declared and measured differ {factor}, which may be chance with so few samples."
    return (
        f"Declared and measured disagree, {factor}. The model may be badly calibrated, trained "
        "with another sampler or weights than declared, or adjusted already."
    )


def _line(name: str, prior: Prior, judged: Judged, style: int) -> Line:
    logs = (prior.log + math.log(judged.num_classes))[judged.order]
    logs = torch.where(logs.isfinite(), logs, math.nan)
    names = [judged.classes[k] for k in judged.order.tolist()]
    return Line(name, range(1, len(logs) + 1), logs.tolist(), labels=names, style=style)
