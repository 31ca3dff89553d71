"""Heads that are convex in what they learn, at the minimum over all samples.

A linear layer is `fit_linear`'s. Learnable weight scaling learns one number a class, in which the
logits are linear.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from longtail.core.arrays import Array, is_torch
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.linear import fit_linear
from longtail.engine.linear_objective import loss_shares, shared_losses
from longtail.heads import Head, LearnableScale, Linear
from longtail.losses import Loss, SampleLoss
from longtail.losses.minimise import minimise

_TOLERANCE = 1e-6
_KEPT = 2**24  # logits that are kept from one look at all samples to the next: 128 MB


@singledispatch
def minimise_head(
    head: Head,
    features: Array,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    weight_decay: float,
) -> None:
    """Move what the head learns to the minimum of loss + ½ · weight_decay · ‖·‖², in place."""
    raise _not_convex(head, loss)


@minimise_head.register
def _(
    head: Linear,
    features: Array,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    weight_decay: float,
) -> None:
    if is_torch(features) and features.element_size() < 4:
        features = features.float()
    layer = fit_linear(
        features,
        labels,
        loss,
        weight_decay=weight_decay,
        bias=head.bias is not None,
        start=head.to_linear(),
    )
    head.load_state_dict(layer.state_dict())


@minimise_head.register
def _(
    head: LearnableScale,
    features: Array,
    rows: FeatureRows,
    labels: Tensor,
    loss: Loss,
    weight_decay: float,
) -> None:
    if not isinstance(loss, SampleLoss):
        raise _not_convex(head, loss)
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


def _not_convex(head: Head, loss: Loss) -> ValueError:
    return ValueError(
        f"{type(head).__name__} with {type(loss).__name__} is not convex in what it learns, "
        "as L-BFGS needs it; use solver='sgd'"
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
