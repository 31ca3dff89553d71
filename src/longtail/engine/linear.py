r"""Fitting a linear head on features, to the minimum of a convex problem.

    min_{W, b}  loss(features · Wᵀ + b, labels) + ½ · weight_decay · ‖W‖²

The bias is not decayed. So at one weight decay, training with the logit-adjusted loss and
adjusting a cross-entropy model afterwards have the same minimum: the bias takes up log π.

`linear_objective` has the value and its exact gradient in blocks of rows, `linear_curvature` the
approximate inverse Hessian, `convex_descent` the L-BFGS that uses it.
"""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from longtail.core.arrays import ArrayLike, refuse_lossy
from longtail.core.blocks import on_disk
from longtail.core.numbers import check_number, check_whole
from longtail.core.tensors import label_tensor
from longtail.engine.convex_descent import descend
from longtail.engine.linear_curvature import Curvature
from longtail.engine.linear_objective import LinearObjective, Rows, blocks, loss_shares
from longtail.losses import Loss, SampleLoss
from longtail.losses.minimise import for_autograd


def fit_linear(
    features: Rows,
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

    Args:
        features: Shape (N, D), float32 or float64, and the layer is of their type. A NumPy array
            may be float16, for a layer in float32, and may be mapped from the disk: it is read in
            blocks of rows and never copied whole.
        labels: Class indices.
        loss: One of `longtail.losses`; the layer's logits then carry `loss.carried`. It must be a
            sum over samples: no term on features, or on the batch as a whole.
        weight_decay: On the weight, not on the bias.
        bias: Whether the layer has one.
        start: Where to start; it is left as it is. None starts at zero.
        max_iter: L-BFGS iterations at most.
        tolerance: It stops when no entry of the gradient is larger, and warns if it never gets
            there.
        progress: Called after each iteration with its number, from 1, and the objective's value.

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
        rows = _checked_rows(features)
        classes = label_tensor(labels, loss.num_classes)
        if len(classes) != len(rows):
            raise ValueError(f"got {len(rows)} rows of features but {len(classes)} labels")
        classes = for_autograd(classes.to(rows.device if isinstance(rows, Tensor) else "cpu"))
        shares = loss_shares(sample_loss, classes)
        objective = LinearObjective(rows, classes, shares, sample_loss, decay, bias)
        layer = _layer_at(start, objective)
        curvature: list[Curvature] = []  # measured when first asked for: small problems never ask

        def inverse_hessian(at: Tensor) -> Callable[[Tensor], Tensor]:
            if not curvature:
                curvature.append(Curvature.of(objective, loss.num_classes))
            return curvature[0].inverse(at)

        columns = [layer.weight] + ([layer.bias.unsqueeze(1)] if bias else [])
        minimum = descend(
            objective,
            torch.cat(columns, dim=1).double(),
            inverse_hessian,
            max_iter=max_iter,
            tolerance=tolerance,
            progress=progress,
        )
        layer.weight.copy_(minimum.at[:, : layer.in_features])
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


def _layer_at(start: nn.Linear | None, objective: LinearObjective) -> nn.Linear:
    """A new layer with the parameters of `start`, or zeros."""
    shape = (objective.loss.num_classes, objective.features.shape[1])
    wrong = start is not None and (
        start.weight.shape != shape or (start.bias is None) == objective.bias
    )
    if start is not None and wrong:
        raise ValueError(
            f"start must be a linear layer with a weight of shape {shape} and "
            f"{'a' if objective.bias else 'no'} bias, got {tuple(start.weight.shape)} "
            f"{'without' if start.bias is None else 'with'} one"
        )
    # Not initialised: that would draw from torch's global generator.
    layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear,
        *shape[::-1],
        bias=objective.bias,
        dtype=objective.dtype,
        device=objective.labels.device,
    )
    if start is not None:
        layer.load_state_dict(start.state_dict())
    else:
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
    return layer


def _check_loss(loss: Loss) -> SampleLoss:
    name = type(loss).__name__
    if not isinstance(loss, SampleLoss):
        raise ValueError(
            f"fit_linear takes losses of longtail.losses that are sums over samples, but {name} "
            "has a term on features or on the batch as a whole, or changes with the epoch; "
            "train the layer with lt.fit_head, by SGD"
        )
    if loss.reduction == "none":
        raise ValueError(
            'fit_linear minimises one number, but the loss has reduction="none"; '
            'use reduction="mean" or "sum"'
        )
    return loss


def _checked_rows(features: Rows) -> Rows:
    """The features, as a tensor if that needs no copy, or a ValueError."""
    allowed = "float32 or float64"
    refuse_lossy(features)
    features = on_disk(features)
    if isinstance(features, Tensor):
        features = features.detach()
        right = features.dtype in (torch.float32, torch.float64)
    else:
        allowed = "float16, float32 or float64"
        right = str(getattr(features, "dtype", "")) in ("float16", "float32", "float64")
    if not right:
        raise ValueError(
            f"features must be {allowed}, got {getattr(features, 'dtype', type(features))}; "
            "convert them to float32"
        )
    shape = tuple(features.shape)
    usual = len(shape) == 2 and shape[0] > 0
    if not usual or not all(block.isfinite().all() for _, block in blocks(features)):
        raise ValueError(
            "features must be finite and of shape (N, D) with at least one row, "
            f"got shape {shape}" + (" with NaN or infinity" if usual else "")
        )
    if type(features) is np.ndarray and features.dtype != np.float16:
        plain = features.flags.c_contiguous and features.flags.writeable
        return torch.from_numpy(features) if plain else features
    return features
