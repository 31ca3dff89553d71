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
    own = torch.tensor([len(tensors[0])], device=tensors[0].device)
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, own)
    sizes = [int(count) for count in counts]
    return tuple(_Gather.apply(tensor, sizes) for tensor in tensors)  # type: ignore[no-untyped-call]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        # Padded to the longest for the exchange, as collectives want equal shapes.
        padded = tensor.new_zeros(max(sizes), *tensor.shape[1:])
        padded[: len(tensor)] = tensor
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Every process has the same gradient, so none needs to be sent.
        own = torch.split(grads[0], ctx.sizes)[dist.get_rank()]
        return own * dist.get_world_size(), None
