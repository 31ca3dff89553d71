"""What the logits are declared to carry beside what their labels say they carry."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core import Prior
from longtail.core.retarget import prior_offset, retarget
from longtail.core.tensors import as_tensor
from longtail.report.charts.lines import Line, line_chart
from longtail.report.judged import Judged
from longtail.report.page import Figure, Section
from longtail.stats import chi_square_quantile

# Mean distance of the logarithms, beyond what chance gives, up to which declared and measured are
# taken as the same, and from which on they disagree.
_NEAR, _APART = 0.1, 0.5


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
    """Whether the labels say, by far more than chance, that the logits carry something else."""
    declared, measured = judged.before.carried, judged.measured
    if declared is None or isinstance(measured, str):
        return False
    beyond = _apart(declared, measured) - _by_chance(judged, measured)
    return beyond >= _APART and not _may_be_chance(judged, declared, measured)


def _apart(declared: Prior, measured: Prior) -> float:
    return float(as_tensor(prior_offset(declared, measured)).abs().mean())


def _by_chance(judged: Judged, measured: Prior) -> float:
    """The mean distance that chance alone gives a prior measured on these samples.

    An offset has the information h = Σ p(1 − p) over the samples; its error is normal with variance
    1/h, whose mean distance from zero is √(2/(πh)). That offsets are fitted together is left out.
    """
    logits, held, _ = _fitted_on(judged)
    probs = retarget(logits, measured, held).softmax(dim=1)
    information = (probs * (1 - probs)).sum(dim=0)
    return float((2 / (math.pi * information)).sqrt().mean())


def _may_be_chance(judged: Judged, declared: Prior, measured: Prior) -> bool:
    """The likelihood ratio of the labels stays below the 95 % quantile of χ² with C − 1 freedoms.

    The held-out frequencies are taken as they are, so the ratio is rather too small than too large.
    """
    logits, held, labels = _fitted_on(judged)
    declared_loss, least_loss = (
        F.cross_entropy(retarget(logits, carried, held), labels, reduction="sum")
        for carried in (declared, measured)
    )
    return bool(
        2 * (declared_loss - least_loss) < chi_square_quantile(0.95, judged.num_classes - 1)
    )


def _fitted_on(judged: Judged) -> tuple[Tensor, Prior, Tensor]:
    """Logits and labels of the samples measured on, with the frequencies of the labels between."""
    logits, labels = as_tensor(judged.before.logits)[judged.some].cpu(), judged.labels[judged.some]
    return logits.double(), Prior.of(torch.bincount(labels, minlength=judged.num_classes)), labels


def _verdict(judged: Judged) -> str:
    declared, measured = judged.before.carried, judged.measured
    if isinstance(measured, str):
        return f"What the logits carry could not be measured here: {measured}."
    if declared is None:
        return (
            "It is not declared what these logits carry. What the labels say is drawn below; on "
            "held-out scores longtail fix --carried measure does the same and uses it."
        )
    apart, chance = _apart(declared, measured), _by_chance(judged, measured)
    factors = (
        f"a class differs by a factor of {math.exp(apart):.2f} on average, where chance alone "
        f"gives about {math.exp(chance):.2f} with so many samples"
    )
    if disagrees(judged):
        return (
            f"Declared and measured disagree: {factors}. The model may be badly calibrated, "
            "trained with another sampler or weights than declared, or adjusted already."
        )
    if apart - chance < _NEAR or _may_be_chance(judged, declared, measured):
        return f"Declared and measured agree as far as these samples can tell: {factors}."
    return (
        f"Declared and measured are near each other, but not the same: {factors}. A model that "
        "fits its training samples too closely departs so; calibration takes it back."
    )


def _line(name: str, prior: Prior, judged: Judged, style: int) -> Line:
    logs = (as_tensor(prior.log) + math.log(judged.num_classes))[judged.order]
    logs = torch.where(logs.isfinite(), logs, math.nan)
    names = [judged.classes[k] for k in judged.order.tolist()]
    return Line(name, range(1, len(logs) + 1), logs.tolist(), labels=names, style=style)
