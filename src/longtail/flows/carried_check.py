r"""What logits are declared to carry beside what their labels say they carry.

An offset that is measured has the information h = Σ p(1 − p) over the samples; its error is normal
with variance 1/h, whose mean distance from zero is √(2/(πh)). That offsets are fitted together is
left out. Whether all of the difference may be chance is told by the likelihood ratio of the labels
against the 95 % quantile of χ² with C − 1 degrees of freedom; the frequencies of the samples are
taken as they are, so the ratio is rather too small than too large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from longtail.core import Prior, measure_carried
from longtail.core.arrays import as_numpy
from longtail.core.retarget import prior_offset, retarget
from longtail.core.tensors import as_tensor
from longtail.flows.samples import BeforeAfter

# Mean distance of the logarithms, beyond what chance gives, up to which declared and measured are
# taken as the same, and from which on they disagree.
_NEAR, _APART = 0.1, 0.5


class Agreement(Enum):
    """How what is declared compares with what is measured."""

    NOT_MEASURED = "the labels do not say what the logits carry"
    NOT_DECLARED = "nothing is declared"
    AGREE = "they are the same as far as the samples can tell"
    NEAR = "they differ by more than chance, but by little"
    DISAGREE = "they differ by far more than chance"


@dataclass(frozen=True, eq=False)
class CarriedCheck:
    """What the scores before carry.

    Attributes:
        agreement: How declared and measured compare.
        declared: What the scores say.
        measured: What the labels say; None if they do not.
        problem: Why they do not, else empty.
        apart: The mean distance of the logarithms of the two, where there are two.
        chance: The mean distance that chance alone gives with so many samples.
    """

    agreement: Agreement
    declared: Prior | None
    measured: Prior | None = None
    problem: str = ""
    apart: float = math.nan
    chance: float = math.nan


def check_carried(samples: BeforeAfter) -> CarriedCheck:
    """Compare what the scores before are declared to carry with what their labels say."""
    declared, labels = samples.before.carried, samples.labels[samples.some]
    logits = as_numpy(samples.before.logits)[samples.some]
    try:
        measured = measure_carried(logits, labels, samples.classes)
    except (ValueError, RuntimeError) as error:
        return CarriedCheck(Agreement.NOT_MEASURED, declared, problem=str(error))
    if declared is None:
        return CarriedCheck(Agreement.NOT_DECLARED, None, measured)
    apart = float(np.abs(as_numpy(prior_offset(declared, measured))).mean())
    wide = as_tensor(logits).double()
    chance, may_be_chance = _chance(wide, as_tensor(labels), declared, measured)
    agreement = Agreement.NEAR
    if may_be_chance or apart - chance < _NEAR:
        agreement = Agreement.AGREE
    elif apart - chance >= _APART:
        agreement = Agreement.DISAGREE
    return CarriedCheck(agreement, declared, measured, apart=apart, chance=chance)


def _chance(
    logits: torch.Tensor, labels: torch.Tensor, declared: Prior, measured: Prior
) -> tuple[float, bool]:
    """How far apart chance puts the two on average, and whether all of it may be chance."""
    from scipy.special import chdtri

    own = Prior.of(np.bincount(labels.numpy(), minlength=logits.shape[1]))
    fitted = retarget(logits, measured, own)
    probs = fitted.softmax(dim=1)
    information: npt.NDArray[np.float64] = (probs * (1 - probs)).sum(dim=0).numpy()
    chance = float(np.sqrt(2 / (math.pi * information)).mean())
    declared_loss, least_loss = (
        float(F.cross_entropy(rows, labels, reduction="sum"))
        for rows in (retarget(logits, declared, own), fitted)
    )
    quantile = float(chdtri(logits.shape[1] - 1, 0.05))
    return chance, 2 * (declared_loss - least_loss) < quantile
