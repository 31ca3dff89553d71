r"""Folding adjusters into the linear layer that made the logits, for export.

Each adjuster is affine in each class's logit, so a row of them is too,

    s'_y (s_y f_y + b_y) + b'_y = s'_y s_y · f_y + (s'_y b_y + b'_y),

and with f = W x + w₀ the whole is one linear layer: row y of W times the scale, w₀ times the scale
plus the shift. The order is checked by the adjusters themselves, as it is on scores.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from longtail.core import Prior, PriorLike
from longtail.core.prior import check_same_classes
from longtail.posthoc.adjuster import Adjuster, Affine, AffineAdjuster
from longtail.posthoc.calibrator import Calibrator
from longtail.posthoc.logit_adjustment import LogitAdjustment


def fold(linear: nn.Linear, *adjusters: Adjuster, carried: PriorLike | None = None) -> nn.Linear:
    """A plain linear layer whose logits are already adjusted.

    What these carry is `chain_affine(adjusters, carried, linear.out_features).carried`. A class
    that a target prior rules out gets a bias of -inf, and probability zero.

    Args:
        linear: The last layer of the model. It stays as it is.
        adjusters: In the order in which they are applied to scores.
        carried: What the logits of `linear` carry: a Prior or class counts. If it is not given,
            the adjusters say what they start from, as a LogitAdjustment and fitted calibrators do.

    >>> from longtail.posthoc import LogitAdjustment, Temperature
    >>> layer = nn.Linear(4, 2)
    >>> folded = fold(layer, Temperature(2.0), LogitAdjustment([90, 10]))
    >>> folded.bias.detach() - layer.bias.detach() / 2      # log 1/2 − log π
    tensor([-0.588,  1.609])
    """
    if type(linear).forward is not nn.Linear.forward:
        raise ValueError(
            f"fold takes a torch.nn.Linear, got {type(linear).__name__}, which may compute its "
            "logits in another way; make a linear layer of it first"
        )
    step = chain_affine(adjusters, carried, linear.out_features)
    weight = _wide(linear.weight) * step.scale[:, None]
    bias = step.shift if linear.bias is None else _wide(linear.bias) * step.scale + step.shift
    # On "meta" nothing is drawn, so the random numbers that follow stay what they would have been.
    folded = nn.Linear(linear.in_features, linear.out_features, device="meta")
    folded.weight = _like(linear.weight, weight)
    folded.bias = _like(linear.weight if linear.bias is None else linear.bias, bias)
    return folded.train(linear.training)


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
    shift = torch.zeros(num_classes, dtype=torch.float64, device="cpu")
    whole = Affine(torch.ones_like(shift), shift, start)
    for adjuster in adjusters:
        if not isinstance(adjuster, AffineAdjuster):
            raise ValueError(
                f"only adjusters that scale and shift logits can be folded, got a "
                f"{type(adjuster).__name__}; derive it from longtail.posthoc.AffineAdjuster"
            )
        step = adjuster.affine(whole.carried, num_classes)
        whole = Affine(
            whole.scale * step.scale, whole.shift * step.scale + step.shift, step.carried
        )
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


def _wide(parameter: Tensor) -> Tensor:
    return parameter.detach().to("cpu", torch.float64)


def _like(parameter: Tensor, values: Tensor) -> nn.Parameter:
    """The values as a parameter of the same dtype, device and need of gradients."""
    return nn.Parameter(values.to(parameter.device, parameter.dtype), parameter.requires_grad)
