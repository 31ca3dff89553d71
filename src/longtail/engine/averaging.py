r"""Averages of weights over steps, and of batch-norm statistics over batches.

The moving average of weights after step t is θ̄ ← d_t·θ̄ + (1 − d_t)·θ, started at the first θ it
sees, with d_t = min(d, (1 + t)/(10 + t)): so it forgets the beginning sooner than d alone would.

Batch-norm statistics estimated anew, with the weights as they are, are the means over batches of
the batch's mean and (unbiased) variance, a batch counting by its size. NCM, appendix A.4: running
estimates lag behind weights that move, and mending them in the second stage helps rare classes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import AveragedModel


def moving_average(model: nn.Module, decay: float = 0.999, warmup: bool = True) -> AveragedModel:
    """A copy of the model whose weights follow those of the model slowly.

    Call `update_parameters(model)` after each step of the optimiser, and the copy itself, or its
    `.module`, to predict. Buffers with fractions, such as batch-norm statistics, are averaged too,
    counters are copied. `decay` is what is kept of the average at a step; less at first with
    `warmup`.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = moving_average(model, decay=0.5, warmup=False)
    >>> for weight in (0.0, 1.0, 1.0):
    ...     _ = nn.init.constant_(model.weight, weight)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    0.75
    """
    if not 0 <= decay < 1:
        raise ValueError(f"decay must lie in [0, 1), got {decay}")

    @torch.no_grad()
    def follow(kept: Iterable[Tensor], new: Iterable[Tensor], updates: Tensor | int) -> None:
        seen = int(updates)
        now = min(decay, (1 + seen) / (10 + seen)) if warmup else decay
        for average, value in zip(kept, new, strict=True):
            if average.is_floating_point():
                average.lerp_(value, 1 - now)
            else:
                average.copy_(value)

    averaged = AveragedModel(model, multi_avg_fn=follow, use_buffers=True)
    return averaged.requires_grad_(False)


@torch.no_grad()
def reestimate_batch_norm(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Replace the running statistics of all batch-norm layers by averages over these batches.

    Give training images, as many as can be afforded, and shuffled: batches of one class each say
    nothing of what a mixed one looks like. All other layers predict, and the model is after as it
    was. Of several processes each sees its own batches: give all the same ones.

    >>> layer = nn.BatchNorm1d(1, affine=False)
    >>> reestimate_batch_norm(layer, [torch.tensor([[0.0], [2.0]]), torch.tensor([[4.0], [6.0]])])
    >>> layer.running_mean.item(), layer.running_var.item()
    (3.0, 2.0)
    """
    layers = [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    ]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    seen = 0
    try:
        with predicting(model):
            for batch in batches:
                if not seen:
                    for layer in layers:
                        layer.train().reset_running_stats()
                seen += len(batch)
                for layer in layers:
                    # The average over all samples so far; momentum=None would be over batches.
                    layer.momentum = len(batch) / seen
                model(batch)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
    if not seen:
        raise ValueError("expected at least one batch to estimate from, got none")


@contextmanager
def predicting(model: nn.Module) -> Iterator[None]:
    """No layer trains; after it all is as it was."""
    flags = [(module, module.training) for module in model.modules()]
    model.train(False)
    try:
        yield
    finally:
        for module, training in flags:
            module.training = training
