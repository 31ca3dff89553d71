r"""Fitting a linear head on features by L-BFGS, to the minimum of a convex problem.

    min_{W, b}  loss(features · Wᵀ + b, labels) + ½ · weight_decay · ‖W‖²

The bias is not decayed. So at one weight decay, training with the logit-adjusted loss and
adjusting a cross-entropy model afterwards have the same minimum: the bias takes up log π.
"""

import torch
from torch import Tensor, nn

from longtail.core.labels import check_labels
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
        features: Shape (N, D). The layer is of their type.
        labels: Class indices.
        loss: One of `longtail.losses`; the layer's logits then carry `loss.carried`.
        weight_decay: On the weight, not on the bias.
        start: Where to start; it is left as it is. None starts at zero.
        max_iter: L-BFGS iterations at most.
        tolerance: It stops when no entry of the gradient is larger.

    >>> import longtail as lt
    >>> features, labels = lt.data.two_gaussians(10_000, seed=0)
    >>> layer = fit_linear(features, labels, lt.losses.LogitAdjusted([95, 5]))
    >>> separator = layer.weight[1] - layer.weight[0], layer.bias[1] - layer.bias[0]
    >>> lt.data.two_gaussians_error(*separator).item()
    0.079
    """
    if features.dim() != 2 or not features.isfinite().all():
        raise ValueError(
            f"features must be finite and of shape (N, D), got shape {tuple(features.shape)}"
            + (" with NaN or infinity" if features.dim() == 2 else "")
        )
    checked = check_labels(labels, loss.num_classes)
    if len(checked) != len(features):
        raise ValueError(f"got {len(features)} rows of features but {len(checked)} labels")
    layer = nn.Linear(features.shape[1], loss.num_classes, dtype=features.dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.zeros(()) if start is None else start.weight)
        layer.bias.copy_(torch.zeros(()) if start is None else start.bias)
    solver = torch.optim.LBFGS(
        layer.parameters(),
        max_iter=max_iter,
        max_eval=2 * max_iter,
        tolerance_grad=tolerance,
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def objective() -> Tensor:
        solver.zero_grad()
        value: Tensor = loss(layer(features), checked)
        if weight_decay:
            value = value + 0.5 * weight_decay * layer.weight.square().sum()
        torch.autograd.backward(value)
        return value

    with torch.enable_grad():
        solver.step(objective)  # type: ignore[no-untyped-call]
    return layer.requires_grad_(False)
