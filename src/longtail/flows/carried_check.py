r"""What logits are declared to carry beside what their labels say they carry.

An offset that is measured has the information h = Σ p(1 − p) over the samples; its error is normal
with variance 1/h, whose mean distance from zero is √(2/(πh)). That offsets are fitted together is
left out. Whether all of the difference may be chance, the likelihood ratio says of the labels
against the 95 % quantile of χ² with C − 1 degrees of freedom; the frequencies of the samples are
taken as they are, so the ratio is rather too small than too large.

Classes without samples say nothing. Among the others p(y|x, y is one of them) has the same logits,
which carry the same prior restricted to them: so these are compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, measure_carried
from longtail.core.arrays import as_numpy
from longtail.core.blocks import blocks
from longtail.core.retarget import prior_offset
from longtail.flows.samples import BeforeAfter, Integers, some_of_each_class
from longtail.shift import PriorEstimate, estimate_prior
from longtail.stats import chi_square_quantile

# Mean distance of the logarithms, beyond what chance gives, up to which declared and measured are
# taken as the same, and from which on they disagree.
_NEAR, _APART = 0.1, 0.5
_BLOCK = 2**18  # numbers of a block, which stays in the cache

Floats = npt.NDArray[np.float64]


class Agreement(Enum):
    """How what is declared compares with what is measured."""

    NOT_MEASURED = "the labels do not say what the logits carry"
    NOT_DECLARED = "nothing is declared"
    AGREE = "they are the same as far as the samples can tell"
    NEAR = "they differ by more than chance, but by little"
    DISAGREE = "they differ by far more than chance"


@dataclass(frozen=True, eq=False)
class CarriedCheck:
    """What the scores before carry."""

    agreement: Agreement  # how declared and measured compare
    declared: Prior | None  # what the scores say
    measured: Prior | None = None  # what the labels say, of classes that have some; None if nothing
    problem: str = ""  # why they do not, else empty
    apart: float = math.nan  # the mean distance of the logarithms of the two, where there are two
    chance: float = math.nan  # the mean distance that chance alone gives with so many samples

    @property
    def factor(self) -> float:
        """By what factor the two differ, of a class on average."""
        return math.exp(self.apart)

    @property
    def chance_factor(self) -> float:
        """By what factor they would differ by chance alone."""
        return math.exp(self.chance)


def over_uniform(prior: Prior) -> Floats:
    """The log of each class's share over that of the uniform prior; NaN for a share of zero."""
    logs = prior_offset(Prior.uniform(prior.num_classes), prior)
    return np.where(np.isfinite(logs), logs, math.nan)


def check_carried(samples: BeforeAfter) -> CarriedCheck:
    """Compare what the scores before are declared to carry with what their labels say."""
    declared, present = samples.before.carried, np.flatnonzero(samples.label_counts)
    logits = as_numpy(samples.before.take(samples.some).logits)[:, present]
    labels = np.searchsorted(present, samples.labels[samples.some])
    try:
        if len(present) < 2:
            raise ValueError("samples of two classes are needed, and these are of one")
        explained = measure_carried(logits, labels, [samples.classes[k] for k in present])
    except (ValueError, RuntimeError) as error:
        return CarriedCheck(Agreement.NOT_MEASURED, declared, problem=str(error))
    shares = np.zeros(samples.num_classes)
    shares[present] = explained.probs
    measured = Prior.of(shares, zeros="keep")
    if declared is None:
        return CarriedCheck(Agreement.NOT_DECLARED, None, measured)
    claimed = Prior.from_log(declared.log[present])
    own = Prior.of(np.bincount(labels, minlength=len(present)))
    declared_loss, _ = _explained(logits, labels, claimed, own)
    measured_loss, information = _explained(logits, labels, explained, own)
    apart = float(np.abs(prior_offset(claimed, explained)).mean())
    chance = float(np.sqrt(2 / (math.pi * information)).mean())
    ratio = 2 * (declared_loss - measured_loss)
    agreement = Agreement.NEAR
    if apart - chance < _NEAR or ratio < chi_square_quantile(0.95, len(present) - 1):
        agreement = Agreement.AGREE
    elif apart - chance >= _APART:
        agreement = Agreement.DISAGREE
    return CarriedCheck(agreement, declared, measured, apart=apart, chance=chance)


def _explained(
    logits: npt.NDArray[Any], labels: Integers, carried: Prior, own: Prior
) -> tuple[float, Floats]:
    """Of logits moved from what they carry to their labels' prior: Σ log-loss, and h by class."""
    offset, loss, information = prior_offset(carried, own), 0.0, np.zeros(len(own.probs))
    for rows, true in blocks(logits, labels, numbers=_BLOCK):
        moved = rows + offset
        moved -= moved.max(axis=1, keepdims=True)
        probs = np.exp(moved)
        sums = probs.sum(axis=1, keepdims=True)
        probs /= sums
        loss += float(np.log(sums).sum() - moved[np.arange(len(true)), true].sum())
        information += probs.sum(axis=0) - np.einsum("ij,ij->j", probs, probs)
    return loss, information


def estimated_prior(samples: BeforeAfter) -> PriorEstimate | str:
    """The prior that the samples follow, estimated without their labels; or why it cannot be."""
    before = replace(samples.before, labels=None, split=None, counts=samples.counts)
    validation = samples.validation
    if validation is not None and validation.carried is None:
        same = before.carried
        validation = None if same is None else replace(validation, carried=same)
    if validation is not None:
        some = some_of_each_class(as_numpy(validation.labels), validation.num_classes)
        validation = validation.take(some)
    try:
        return estimate_prior(before.take(samples.some), validation=validation)
    except (ValueError, RuntimeError) as error:
        return str(error)
