"""Smooth minimisation of tensors by torch's L-BFGS, the one place that writes its closure."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


def minimise(
    objective: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    *,
    max_iter: int,
    tolerance: float,
    history: int = 20,
) -> float:
    """Move the parameters to a minimum of the objective; the largest entry of its gradient there.

    It stops at a gradient without an entry above the tolerance, where no step lowers the value any
    more, or after `max_iter` iterations. Gradients may be off around it.
    """
    moved = list(parameters)
    solver = torch.optim.LBFGS(
        moved,
        max_iter=max_iter,
        max_eval=2 * max_iter,
        tolerance_grad=tolerance,
        tolerance_change=0.0,
        history_size=history,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        solver.zero_grad()
        value = objective()
        torch.autograd.backward(value)
        return value

    with torch.inference_mode(False), torch.enable_grad():
        solver.step(closure)  # type: ignore[no-untyped-call]
        closure()
    return max(float(p.grad.abs().max()) for p in moved if p.grad is not None)


def for_autograd(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if it was made in inference mode, where autograd cannot use it."""
    with torch.inference_mode(False):
        return tensor.clone() if tensor.is_inference() else tensor
