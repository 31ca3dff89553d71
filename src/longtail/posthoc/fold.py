r"""Folding adjusters into the linear layer that made the logits, for export.

Each adjuster is affine in each class's logit, so a row of them is too,

    s'_y (s_y f_y + b_y) + b'_y = s'_y s_y · f_y + (s'_y b_y + b'_y),

and with f = W x + w₀ the whole is one linear layer: row y of W times the scale, w₀ times the scale
plus the shift. The order is checked by the adjusters themselves, as it is on scores.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

import numpy as np

from longtail.core import Prior, PriorLike
from longtail.core.arrays import as_numpy
from longtail.core.prior import check_same_classes
from longtail.posthoc.adjuster import Adjuster, Affine, AffineAdjuster, like
from longtail.posthoc.calibrators import Calibrator
from longtail.posthoc.logit_adjustment import LogitAdjustment

if TYPE_CHECKING:
    from torch import nn


class LinearLike(Protocol):
    """Whatever has the weight of a linear layer, of shape (C, D), and its bias or None."""

    weight: Any
    bias: Any


class FoldedLinear(NamedTuple):
    """A linear layer of arrays: logits are x @ weight.T + bias."""

    weight: Any
    bias: Any


@overload
def fold(
    linear: nn.Linear, *adjusters: Adjuster, carried: PriorLike | None = None
) -> nn.Linear: ...


@overload
def fold(
    linear: LinearLike, *adjusters: Adjuster, carried: PriorLike | None = None
) -> FoldedLinear: ...


def fold(linear: Any, *adjusters: Adjuster, carried: PriorLike | None = None) -> Any:
    """A plain linear layer whose logits are already adjusted.

    What these carry is `chain_affine(adjusters, carried, num_classes).carried`. A class that a
    target prior rules out gets a bias of -inf, and probability zero.

    Args:
        linear: The last layer of the model: a torch.nn.Linear, or anything else with `weight` and
            `bias`, of which the folded arrays come back. It stays as it is.
        adjusters: In the order in which they are applied to scores.
        carried: What the logits of `linear` carry: a Prior or class counts. If it is not given,
            the adjusters say what they start from, as a LogitAdjustment and fitted calibrators do.

    >>> from longtail.posthoc import LogitAdjustment, Temperature
    >>> layer = FoldedLinear(weight=np.eye(2), bias=np.zeros(2))
    >>> fold(layer, Temperature(2.0), LogitAdjustment([90, 10])).bias       # log 1/2 − log π
    array([-0.588,  1.609])
    """
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(linear, torch.nn.Module)
    if torch is not None and is_module and type(linear).forward is not torch.nn.Linear.forward:
        raise ValueError(
            f"fold takes a torch.nn.Linear, got {type(linear).__name__}, which may compute its "
            "logits in another way; make a linear layer of it first"
        )
    weight, bias = linear.weight, linear.bias
    step = chain_affine(adjusters, carried, len(weight))
    wide = as_numpy(weight).astype(np.float64) * step.scale[:, None]
    start = 0.0 if bias is None else as_numpy(bias).astype(np.float64)
    addend = start * step.scale + step.shift
    folded = FoldedLinear(like(wide, weight), like(addend, weight if bias is None else bias))
    if torch is None or not is_module:
        return folded
    # On "meta" nothing is drawn, so the random numbers that follow stay what they would have been.
    layer = torch.nn.Linear(linear.in_features, linear.out_features, device="meta")
    layer.weight = torch.nn.Parameter(folded.weight, weight.requires_grad)
    layer.bias = torch.nn.Parameter(folded.bias, (weight if bias is None else bias).requires_grad)
    return layer.train(linear.training)


def chain_affine(
    adjusters: Sequence[Adjuster], carried: PriorLike | None, num_classes: int
) -> Affine:
    """All adjusters, one after the other, as one scale and one shift; a ValueError if out of order.

    Args:
        adjusters: In the order in which they are applied.
        carried: What the logits carry before the first; None as in `fold`.
        num_classes: How many classes the logits have.
    """
    start = _start(adjusters) if carried is None else Prior.of(carried)
    if start is not None:
        check_same_classes(num_classes, start, "the logits have", "the carried prior")
    whole = Affine(np.ones(num_classes), np.zeros(num_classes), start)
    for adjuster in adjusters:
        if not isinstance(adjuster, AffineAdjuster):
            raise ValueError(
                f"only adjusters that scale and shift logits can be folded, got a "
                f"{type(adjuster).__name__}; derive it from longtail.posthoc.AffineAdjuster"
            )
        whole = whole.then(adjuster.affine(whole.carried, num_classes))
    return whole


def _start(adjusters: Sequence[Adjuster]) -> Prior | None:
    """What the first adjuster starts from that says so; calibrators made by hand do not."""
    for adjuster in adjusters:
        if isinstance(adjuster, LogitAdjustment):
            return adjuster.prior
        if not isinstance(adjuster, Calibrator):
            return None
        if adjuster.carried is not None:
            return adjuster.source
    return None
