r"""The margin kernel: one computation behind every loss of LA eq. 11.

    ℓ(y, f) = log[1 + Σ_{y'≠y} exp(Δ_{yy'} + f_{y'} − f_y)]

Every margin of the papers splits as Δ_{yy'} = b_{y'} − a_y, so ℓ is the cross-entropy of z with
z_{y'} = f_{y'} + b_{y'} for the negatives and z_y = f_y + a_y for the positive: no C × C matrix.
Here b is called `negative` and a `positive`. Without a `positive`, a = b and z is one shift of f.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.core.tensors import wide_dtype

Share: TypeAlias = Tensor | float | None
Fused: TypeAlias = Callable[[Tensor], tuple[float, Tensor] | None]


def label_losses(
    logits: Tensor,
    labels: Tensor,
    negative: Tensor | None,
    positive: Tensor | None,
    share: Share = None,
    scale: float = 1.0,
) -> Tensor:
    """ℓ(y_i, scale · f_i) of each sample, or their sum weighted by `share`.

    Labels are all in range; b broadcasts over the logits, None for zero; a is that of each label,
    None for a = b; a share is one number for each sample, or one for all.
    """
    index = labels.unsqueeze(1)
    if positive is not None:
        positive = positive.unsqueeze(1)
    if not is_eager_cpu(logits):
        z = _assemble(logits, index, negative, positive, scale)
        return weighted(F.cross_entropy(z, labels, reduction="none"), share)
    value: Tensor = _FusedLoss.apply(logits, index, negative, positive, share, scale)  # type: ignore[no-untyped-call]
    return value


def fused_value(rows: Tensor, fused: Fused, plain: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of the rows: `fused` gives it with its gradient, or None; `plain` torch's way."""
    both = fused(rows.detach()) if is_eager_cpu(rows) else None
    if both is None:
        return plain(rows)
    value: Tensor = _FusedValue.apply(rows, *both, fused, plain)  # type: ignore[no-untyped-call]
    return value


def is_eager_cpu(tensor: Tensor) -> bool:
    """Whether values can be looked at for free, and a gradient of our own be used.

    On a GPU a look waits; compilers, tracers and torch.func transforms have no values to look at.
    """
    return (
        tensor.is_cpu
        and type(tensor) in (Tensor, nn.Parameter)
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )


def for_autograd(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if it was made in inference mode, where autograd cannot use it."""
    with torch.inference_mode(False):
        return tensor.clone() if tensor.is_inference() else tensor


def weighted(losses: Tensor, share: Share) -> Tensor:
    """The losses, or their sum weighted by `share`."""
    if share is None:
        return losses
    return (losses * share).sum() if isinstance(share, Tensor) else losses.sum() * share


def class_losses(logits: Tensor, negative: Tensor | None, positive: Tensor | None) -> Tensor:
    """ℓ(y, f_i) for every label y, shape (N, C, ...), as soft labels need; a broadcasts like b."""
    f = logits.to(wide_dtype(logits.dtype))
    z = f if negative is None else f + negative
    if positive is None:
        return -torch.log_softmax(z, dim=1)
    excess = _logsumexp_of_others(z) - f - positive
    # Not F.softplus, which is linear above 20 and off by 2e-9 there.
    return torch.logaddexp(excess, torch.zeros_like(excess))


def _logsumexp_of_others(z: Tensor) -> Tensor:
    """Log Σ_{k≠y} exp z_k for every y: L + log(1 − p_y) with L the log-sum-exp over all.

    That cancels only where p_y is near one, as for the largest: there the sum is taken without it.
    """
    total = torch.logsumexp(z, dim=1, keepdim=True)
    top = z.argmax(dim=1, keepdim=True)
    without_top = torch.logsumexp(z.scatter(1, top, -torch.inf), dim=1, keepdim=True)
    is_top = torch.zeros_like(z, dtype=torch.bool).scatter(1, top, True)
    # A share that is not the largest is at most one half; rounding of huge z may not know it. The
    # masked value only keeps the unused branch, and so its gradient, finite.
    share = (z - total).exp().clamp(max=0.5).masked_fill(is_top, 0.0)
    return torch.where(is_top, without_top, total + torch.log1p(-share))


def _assemble(
    logits: Tensor, index: Tensor, negative: Tensor | None, positive: Tensor | None, scale: float
) -> Tensor:
    """z, in a dtype that is safe for sums of exponentials."""
    f = logits.to(wide_dtype(logits.dtype))
    f = f if scale == 1.0 else f * scale
    z = f if negative is None else f + negative
    if positive is None:
        return z
    own = f.gather(1, index) + positive
    # In place where z is ours, as fresh memory costs; but a gradient needs what was gathered from.
    ours = z is not logits and (z is not f or not f.requires_grad)
    return z.scatter_(1, index, own) if ours else z.scatter(1, index, own)


class _FusedLoss(torch.autograd.Function):
    """Cross-entropy of z on the CPU, with fewer passes over memory than torch's own.

    The softmax becomes the gradient in place, in the forward pass. torch keeps the log-softmax,
    fills a zero matrix and makes a third one of both; not doing that pays for adding the margins.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        index: Tensor,
        negative: Tensor | None,
        positive: Tensor | None,
        share: Share,
        scale: float,
    ) -> Tensor:
        z = _assemble(logits, index, negative, positive, scale)
        # Row by row in place where z is ours: fresh memory costs more than the sums over it.
        p = torch.softmax(z, 1, out=z if z.dim() == 2 and z is not logits else None)
        chosen = p.gather(1, index).squeeze(1)
        losses = torch.special.xlogy(-1.0, chosen)  # -log, which alone would start MKL's threads
        if chosen.numel() and not chosen.min().item() >= torch.finfo(p.dtype).tiny:
            # Some p underflow, or are NaN: their logarithms must be taken before the exponentials.
            z = _assemble(logits, index, negative, positive, scale)
            losses = -torch.log_softmax(z, dim=1).gather(1, index).squeeze(1)
        if ctx.needs_input_grad[0]:
            ctx.share, ctx.scale = share, scale
            ctx.gradient = _gradient(p, index, share, scale)
            ctx.save_for_backward(logits, index, negative, positive)
        return weighted(losses, share)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        grad = grads[0].unsqueeze(1) if ctx.share is None else grads[0]
        gradient, ctx.gradient = ctx.gradient, None  # handed out once: its taker may change it
        if gradient is None or torch.is_grad_enabled():  # again, or as a function of the logits
            logits, index, negative, positive = ctx.saved_tensors
            p = torch.softmax(_assemble(logits, index, negative, positive, ctx.scale), dim=1)
            gradient = _gradient(p.clone(), index, ctx.share, ctx.scale)
        if ctx.share is None or torch.is_grad_enabled() or grad.item() != 1.0:
            gradient = gradient * grad
        return gradient, None, None, None, None, None


class _FusedValue(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, value: float, gradient: Tensor, *functions: Callable[[Tensor], Any]
    ) -> Tensor:
        ctx.gradient, ctx.functions = gradient, functions
        ctx.save_for_backward(rows)
        return rows.new_full((), value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (rows,), (fused, plain) = ctx.saved_tensors, ctx.functions
        gradient, ctx.gradient = ctx.gradient, None  # handed out once: its taker may change it
        if torch.is_grad_enabled():  # a second derivative is asked for
            (gradient,) = torch.autograd.grad(plain(rows), rows, create_graph=True)
        elif gradient is None:  # asked for again: the same numbers, so there is one again
            gradient = fused(rows)[1]
        if torch.is_grad_enabled() or grads[0].item() != 1.0:
            gradient = gradient * grads[0]
        return gradient, None, None, None, None


def _gradient(p: Tensor, index: Tensor, share: Share, scale: float) -> Tensor:
    """(p − one-hot) times the scale and what each sample counts, in the memory of p."""
    if isinstance(share, Tensor):
        counted = share.unsqueeze(1) * scale
        return p.mul_(counted).scatter_add_(1, index, -counted)
    factor = scale if share is None else scale * share
    scaled = p if factor == 1.0 else p.mul_(factor)
    return scaled.scatter_add_(1, index, p.new_full((), -factor).expand_as(index))
