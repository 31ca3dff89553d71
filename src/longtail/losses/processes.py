r"""The whole batch on every process, for losses that are statistics of the batch.

With torch.distributed initialised, `whole_batch` puts the rows of all processes together, so that
every process computes the loss of the whole batch L(f_1, ..., f_k) on the same numbers. Each then
back-propagates into its own rows only. DDP averages the k parameter gradients, so the gradient of
the own rows is multiplied by k here: the average is then dL/dθ of one process with the whole batch.

Gradient accumulation is something else: the batches of the steps do not know each other.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def whole_batch(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The rows of all processes in the order of their ranks; on one process, the tensors.

    The processes may have unequal numbers of rows, or none, but all must call it.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return tensors
    sizes = _row_counts(tensors[0])
    return tuple(
        _gather_with_gradient(tensor, sizes) if tensor.requires_grad else _gather(tensor, sizes)
        for tensor in tensors
    )


def _gather_with_gradient(tensor: Tensor, sizes: list[int]) -> Tensor:
    gathered: Tensor = _Gather.apply(tensor, sizes)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        return _gather(tensor, sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Every process has the same gradient, so none needs to be sent.
        own = torch.split(grads[0], ctx.sizes)[dist.get_rank()]
        return own * dist.get_world_size(), None


def _row_counts(tensor: Tensor) -> list[int]:
    own = torch.tensor([len(tensor)], device=tensor.device)
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, own)
    return [int(count) for count in counts]


def _gather(tensor: Tensor, sizes: list[int]) -> Tensor:
    """Rows are padded to the longest for the exchange, as collectives want equal shapes."""
    padded = tensor.new_zeros(max(sizes), *tensor.shape[1:])
    padded[: len(tensor)] = tensor.detach()
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])
