r"""Heads that are convex in what they learn, at the minimum over all samples.

    min_{W, b}  loss(features · Wᵀ + b, labels) + ½ · weight_decay · ‖W‖²

The bias is not decayed. So at one weight decay, training with the logit-adjusted loss and
adjusting a cross-entropy model afterwards have the same minimum: the bias takes up log π.
Learnable weight scaling learns one number a class, in which the logits are linear.

`linear_objective` has the value, its exact gradient and the approximate inverse Hessian,
`convex_descent` the L-BFGS that uses them.
"""

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import singledispatch

import torch
from torch import Tensor, nn

from longtail.core.arrays import Array, ArrayLike
from longtail.core.numbers import check_number, check_whole
from longtail.core.tensors import label_tensor
from longtail.engine.convex_descent import Operator, descend
from longtail.engine.feature_rows import FeatureRows
from longtail.engine.linear_objective import Curvature, LinearObjective, loss_shares, shared_losses
from longtail.heads import Head, LearnableScale, Linear
from longtail.losses import Loss, SampleLoss
from longtail.losses.kernel import for_autograd

_KEPT = 2**24  # logits that are kept from one look at all samples to the next: 128 MB


def fit_linear(
    features: Array | FeatureRows,
    labels: ArrayLike,
    loss: Loss,
    *,
    weight_decay: float = 0.0,
    bias: bool = True,
    start: nn.Linear | None = None,
    max_iter: int = 500,
    tolerance: float = 1e-6,
    progress: Callable[[int, float], None] | None = None,
) -> nn.Linear:
    """A linear layer that minimises the loss on these features.

    Beside the features, and about fifty numbers for each of the layer's, it holds 2**26 numbers of
    curvature at most, a few times 2**24 of what that is measured on, and a few blocks of 2**22.
    With a fixed number of threads it gives the same layer every time.

    The layer is float64 if the features are, else float32; its logits carry `loss.carried`. The
    features may be mapped from the disk: they are read in blocks of rows and never copied whole.
    The loss must be a sum over samples: no term on features, or on the batch as a whole. `start` is
    left as it is. It stops when no entry of the gradient is above the tolerance, and warns if it
    never gets there; `progress` is told each iteration, from 1, and the objective's value.

    >>> import longtail as lt
    >>> features, labels = lt.data.two_gaussians(10_000, seed=0)
    >>> layer = fit_linear(features, labels, lt.losses.LogitAdjusted([95, 5]))
    >>> separator = layer.weight[1] - layer.weight[0], layer.bias[1] - layer.bias[0]
    >>> lt.data.two_gaussians_error(*separator).item()
    0.079
    """
    sample_loss = _check_loss(loss)
    decay = check_number(weight_decay, "weight_decay", least=0)
    check_number(tolerance, "tolerance", least=0)
    check_whole(max_iter, "max_iter", least=0)
    with torch.inference_mode(False), torch.no_grad():
        rows = features if isinstance(features, FeatureRows) else FeatureRows(features)
        classes = label_tensor(labels, loss.num_classes)
        if len(classes) != len(rows) or not len(rows):
            raise ValueError(
                f"got {len(rows)} rows of features but {len(classes)} labels; expected a label for "
                "each row, and at least one row"
            )
        rows.check_finite("features")
        classes = for_autograd(classes.to(rows.device))
        shares = loss_shares(sample_loss, classes)
        objective = LinearObjective(rows, classes, shares, sample_loss, decay, bias)
        curvature: list[Curvature] = []  # measured when first asked for: small problems never ask

        def inverse_hessian(at: Tensor) -> Operator:
            if not curvature:
                curvature.append(Curvature.of(objective, loss.num_classes))
            return curvature[0].inverse(at)

        minimum = descend(
            objective,
            _start(start, objective),
            inverse_hessian,
            max_iter=max_iter,
            tolerance=tolerance,
            progress=progress,
        )
        # Made on no device and filled: to initialise it would draw from torch's global generator.
        bare = nn.Linear(rows.dim, loss.num_classes, bias=bias, dtype=rows.dtype, device="meta")
        layer = bare.to_empty(device=rows.device)
        layer.weight.copy_(minimum.at[:, : rows.dim])
        if bias:
            layer.bias.copy_(minimum.at[:, -1])
    gradient = float(minimum.gradient.abs().max())
    if not gradient <= tolerance:
        warnings.warn(
            f"the layer has not reached a minimum: its gradient is still {gradient:.2g} where "
            f"{tolerance:.2g} was asked, after max_iter={max_iter} iterations or where rounding "
            "ends; raise max_iter or tolerance, or use float64 features",
            RuntimeWarning,
            stacklevel=2,
        )
    return layer.requires_grad_(False)


def _start(start: nn.Linear | None, objective: LinearObjective) -> Tensor:
    """The weight, and the bias as a last column, of `start`, or zeros; in float64."""
    rows, bias = objective.rows, objective.bias
    shape = (objective.loss.num_classes, rows.dim)
    if start is None:
        return torch.zeros(shape[0], rows.dim + bias, dtype=torch.float64, device=rows.device)
    if start.weight.shape != shape or (start.bias is None) == bias:
        raise ValueError(
            f"start must be a linear layer with a weight of shape {shape} and "
            f"{'a' if bias else 'no'} bias, got {tuple(start.weight.shape)} "
            f"{'without' if start.bias is None else 'with'} one"
        )
    columns = [start.weight] + ([start.bias.unsqueeze(1)] if bias else [])
    # Rounded as the layer will be, so that one at the minimum stays there.
    return torch.cat(columns, dim=1).to(rows.device, rows.dtype).double()


def _check_loss(loss: Loss) -> SampleLoss:
    if not isinstance(loss, SampleLoss):
        raise ValueError(
            "fit_linear takes losses of longtail.losses that are sums over samples, but "
            f"{type(loss).__name__} has a term on features or on the batch as a whole, or changes "
            "with the epoch; train the layer with lt.fit_head, by SGD"
        )
    if loss.reduction == "none":
        raise ValueError(
            'fit_linear minimises one number, but the loss has reduction="none"; '
            'use reduction="mean" or "sum"'
        )
    return loss


@singledispatch
def minimise_head(head: Head, rows: FeatureRows, labels: Tensor, loss: Loss, decay: float) -> None:
    """Move what the head learns to the minimum of loss + ½ · decay · ‖·‖², in place."""
    raise _not_convex(head, loss)


@minimise_head.register
def _(head: Linear, rows: FeatureRows, labels: Tensor, loss: Loss, decay: float) -> None:
    bias, start = head.bias is not None, head.to_linear()
    layer = fit_linear(rows, labels, loss, weight_decay=decay, bias=bias, start=start)
    head.load_state_dict(layer.state_dict())


@minimise_head.register
def _(head: LearnableScale, rows: FeatureRows, labels: Tensor, loss: Loss, decay: float) -> None:
    if not isinstance(loss, SampleLoss):
        raise _not_convex(head, loss)
    shares = loss_shares(loss, labels)
    # In float64: near a minimum float32 rounds the values that are compared to one.
    bare = deepcopy(head).double()
    bare.scale.data.fill_(1.0)

    def logits() -> Iterator[tuple[slice, Tensor]]:
        for at, block in rows.blocks():
            yield at, bare(block.double())

    def objective(scale: Tensor) -> tuple[float, Tensor]:
        value, slope = 0.5 * decay * float(scale.square().sum()), decay * scale
        for at, plain in kept or logits():
            with torch.enable_grad():
                moved = scale.clone().requires_grad_()
                part = shared_losses(loss, moved * plain, labels[at]) @ shares[at]
                slope = slope + torch.autograd.grad(part, moved)[0]
            value += float(part)
        return value, slope

    with torch.inference_mode(False), torch.no_grad():
        kept = list(logits()) if len(rows) * head.num_classes <= _KEPT else None
        start = head.scale.detach().double()
        minimum = descend(objective, start, lambda _: torch.clone, max_iter=500, tolerance=1e-6)
        head.scale.copy_(minimum.at)
    left = float(minimum.gradient.abs().max())
    if not left <= 1e-6:
        warnings.warn(
            f"the scale has not reached a minimum: its gradient is still {left:.2g}; "
            "features that differ less in scale get closer",
            RuntimeWarning,
            stacklevel=4,
        )


def _not_convex(head: Head, loss: Loss) -> ValueError:
    return ValueError(
        f"{type(head).__name__} with {type(loss).__name__} is not convex in what it learns, "
        "as L-BFGS needs it; use solver='sgd'"
    )
