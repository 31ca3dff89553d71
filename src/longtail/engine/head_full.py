"""Learnable weight scaling at the minimum over all samples, a block of them at a time.

One number a class is learned, in which the logits are linear, so the problem is convex. A whole
linear layer is `fit_linear`'s.
"""

import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from longtail.engine.feature_rows import FeatureRows
from longtail.engine.linear_objective import loss_shares, shared_losses
from longtail.heads import Head, LearnableScale
from longtail.losses import Loss, RegularizedLoss
from longtail.losses.minimise import minimise

_TOLERANCE = 1e-6
_KEPT = 2**24  # logits that are kept from one look at all samples to the next: 128 MB


def minimise_scale(
    head: Head, rows: FeatureRows, labels: Tensor, loss: Loss, weight_decay: float
) -> None:
    """Move the scale of LearnableScale to the minimum of loss + ½ · weight_decay · ‖scale‖²."""
    if not isinstance(head, LearnableScale) or isinstance(loss, RegularizedLoss):
        raise ValueError(
            f"{type(head).__name__} with {type(loss).__name__} is not convex in what it learns, "
            "as L-BFGS needs it; use solver='sgd'"
        )
    shares = loss_shares(loss, labels)
    # In float64: near a minimum float32 rounds the values that are compared to one.
    bare = deepcopy(head).double()
    bare.scale.data.fill_(1.0)

    def logits() -> Iterator[tuple[slice, Tensor]]:
        with torch.no_grad():
            for at, block in rows.blocks():
                yield at, bare(block.double())

    kept = list(logits()) if len(rows) * head.num_classes <= _KEPT else None

    def objective() -> Tensor:
        value = torch.zeros((), dtype=torch.float64)
        slope = torch.zeros_like(head.scale)
        for at, plain in kept or logits():
            part = shared_losses(loss, head.scale.double() * plain, labels[at]) @ shares[at]
            slope += torch.autograd.grad(part, head.scale)[0]
            value = value + part.detach()
        known: Tensor = _Known.apply(value, slope, head.scale)  # type: ignore[no-untyped-call]
        return known + 0.5 * weight_decay * head.scale.double().square().sum()

    with torch.inference_mode(False), torch.enable_grad():
        left = minimise(objective, [head.scale], max_iter=500, tolerance=_TOLERANCE)
    if not left <= _TOLERANCE:
        warnings.warn(
            f"the scale has not reached a minimum: its gradient is still {left:.2g}; "
            "features that differ less in scale, or a float64 head, get closer",
            RuntimeWarning,
            stacklevel=4,
        )


class _Known(torch.autograd.Function):
    """A value whose gradient is known: the sum over blocks, without their graphs."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, slope: Tensor, scale: Tensor) -> Tensor:
        ctx.slope = slope
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[None, None, Tensor]:
        return None, None, slopes[0].to(ctx.slope) * ctx.slope
