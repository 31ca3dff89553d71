r"""Fitting a linear head on features by L-BFGS, to the minimum of a convex problem.

    min_{W, b}  loss(features · Wᵀ + b, labels) + ½ · weight_decay · ‖W‖²

The bias is not decayed. So at one weight decay, training with the logit-adjusted loss and
adjusting a cross-entropy model afterwards have the same minimum: the bias takes up log π.
"""

import warnings

import torch
from torch import Tensor, nn

from longtail.core.labels import check_labels
from longtail.core.minimise import for_autograd, minimise
from longtail.core.numbers import check_number
from longtail.losses import Loss


def fit_linear(
    features: Tensor,
    labels: Tensor,
    loss: Loss,
    *,
    weight_decay: float = 0.0,
    start: nn.Linear | None = None,
    max_iter: int = 500,
    tolerance: float = 1e-6,
) -> nn.Linear:
    """A linear layer that minimises the loss on these features.

    Args:
        features: Shape (N, D), float32 or float64. The layer is of their type.
        labels: Class indices.
        loss: One of `longtail.losses`; the layer's logits then carry `loss.carried`.
        weight_decay: On the weight, not on the bias.
        start: Where to start; it is left as it is. None starts at zero.
        max_iter: L-BFGS iterations at most.
        tolerance: It stops when no entry of the gradient is larger, and warns if it never gets
            there.

    >>> import longtail as lt
    >>> features, labels = lt.data.two_gaussians(10_000, seed=0)
    >>> layer = fit_linear(features, labels, lt.losses.LogitAdjusted([95, 5]))
    >>> separator = layer.weight[1] - layer.weight[0], layer.bias[1] - layer.bias[0]
    >>> lt.data.two_gaussians_error(*separator).item()
    0.079
    """
    _check_features(features)
    if loss.reduction == "none":
        raise ValueError(
            'fit_linear minimises one number, but the loss has reduction="none"; '
            'use reduction="mean" or "sum"'
        )
    decay = check_number(weight_decay, "weight_decay", least=0)
    checked = check_labels(labels, loss.num_classes)
    if len(checked) != len(features):
        raise ValueError(f"got {len(features)} rows of features but {len(checked)} labels")
    known = for_autograd(checked.to(features.device))
    rows = for_autograd(features.detach())
    layer = _layer_at(start, rows, loss.num_classes)

    def objective() -> Tensor:
        # In float64: near a minimum the line search compares values that float32 rounds to one.
        value: Tensor = loss(layer(rows).double(), known)
        return value + 0.5 * decay * layer.weight.double().square().sum() if decay else value

    gradient = minimise(objective, layer.parameters(), max_iter=max_iter, tolerance=tolerance)
    if not gradient <= tolerance:
        warnings.warn(
            f"the layer has not reached a minimum: its gradient is still {gradient:.2g} where "
            f"{tolerance:.2g} was asked, after max_iter={max_iter} iterations or where rounding "
            "ends; raise max_iter or tolerance, or use float64 features",
            RuntimeWarning,
            stacklevel=2,
        )
    return layer.requires_grad_(False)


def _layer_at(start: nn.Linear | None, features: Tensor, num_classes: int) -> nn.Linear:
    """A new layer with the parameters of `start`, or zeros."""
    shape = (num_classes, features.shape[1])
    if start is not None and (start.weight.shape != shape or start.bias is None):
        raise ValueError(
            f"start must be a linear layer with a weight of shape {shape} and a bias, "
            f"got {tuple(start.weight.shape)} {'without' if start.bias is None else 'with'} one"
        )
    with torch.inference_mode(False), torch.no_grad():
        # Not initialised: that would draw from torch's global generator.
        layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, *shape[::-1], dtype=features.dtype, device=features.device
        )
        if start is not None:
            layer.load_state_dict(start.state_dict())
        else:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
    return layer


def _check_features(features: Tensor) -> None:
    if features.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"features must be float32 or float64, got {features.dtype}; "
            "convert them with features.float()"
        )
    if features.dim() != 2 or not len(features) or not features.isfinite().all():
        raise ValueError(
            "features must be finite and of shape (N, D) with at least one row, "
            f"got shape {tuple(features.shape)}"
            + (" with NaN or infinity" if features.dim() == 2 and len(features) else "")
        )
