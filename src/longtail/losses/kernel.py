r"""The margin kernel: one computation behind every loss of LA eq. 11.

    ℓ(y, f) = log[1 + Σ_{y'≠y} exp(Δ_{yy'} + f_{y'} − f_y)]

Every margin of the papers splits as Δ_{yy'} = b_{y'} − a_y, so ℓ is the cross-entropy of z with
z_{y'} = f_{y'} + b_{y'} for the negatives and z_y = f_y + a_y for the positive: no C × C matrix.
Here b is called `negative` and a `positive`. Without a `positive`, a = b and z is one shift of f.
"""

from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import wide_dtype

Share: TypeAlias = Tensor | float | None


def label_losses(
    logits: Tensor,
    labels: Tensor,
    negative: Tensor | None,
    positive: Tensor | None,
    share: Share = None,
) -> Tensor:
    """ℓ(y_i, f_i) of each sample, or their sum weighted by `share`.

    Args:
        logits: Shape (N, C, ...).
        labels: Class indices of shape (N, ...), all in range.
        negative: b, of a shape that broadcasts over the logits, or None for zero.
        positive: a_{y_i} of each sample, of the labels' shape, or None for a = b.
        share: What each sample counts in the sum: of the labels' shape, or one number for all.
    """
    index = labels.unsqueeze(1)
    if positive is not None:
        positive = positive.unsqueeze(1)
    if torch.compiler.is_compiling() or not logits.is_cpu:
        z = _assemble(logits, index, negative, positive)
        return weighted(F.cross_entropy(z, labels, reduction="none"), share)
    value: Tensor = _FusedLoss.apply(logits, index, negative, positive, share)  # type: ignore[no-untyped-call]
    return value


def weighted(losses: Tensor, share: Share) -> Tensor:
    """The losses, or their sum weighted by `share`."""
    if share is None:
        return losses
    return (losses * share).sum() if isinstance(share, Tensor) else losses.sum() * share


def class_losses(logits: Tensor, negative: Tensor | None, positive: Tensor | None) -> Tensor:
    """ℓ(y, f_i) of each sample for every label y, shape (N, C, ...): what soft labels need.

    Here `positive` is a, of a shape that broadcasts over the logits.
    """
    f = logits.to(wide_dtype(logits.dtype))
    z = f if negative is None else f + negative
    if positive is None:
        return -torch.log_softmax(z, dim=1)
    excess = _logsumexp_of_others(z) - f - positive
    # Not F.softplus, which is linear above 20 and off by 2e-9 there.
    return torch.logaddexp(excess, torch.zeros_like(excess))


def _logsumexp_of_others(z: Tensor) -> Tensor:
    """Log Σ_{k≠y} exp z_k for every y, without cancellation and without a C × C array.

    It is L + log(1 − p_y) with L the log-sum-exp over all. That cancels only where p_y is near
    one, which at most the largest class can be: there the sum is taken anew without it.
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
    logits: Tensor, index: Tensor, negative: Tensor | None, positive: Tensor | None
) -> Tensor:
    """z, in a dtype that is safe for sums of exponentials."""
    f = logits.to(wide_dtype(logits.dtype))
    z = f if negative is None else f + negative
    return z if positive is None else z.scatter(1, index, f.gather(1, index) + positive)


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
    ) -> Tensor:
        z = _assemble(logits, index, negative, positive)
        # Row by row in place where z is ours: fresh memory costs more than the sums over it.
        p = torch.softmax(z, 1, out=z if z.dim() == 2 and z is not logits else None)
        chosen = p.gather(1, index).squeeze(1)
        losses = torch.special.xlogy(-1.0, chosen)  # -log, which alone would start MKL's threads
        if chosen.numel() and chosen.min().item() < torch.finfo(p.dtype).tiny:  # underflown
            z = _assemble(logits, index, negative, positive)
            losses = (torch.logsumexp(z, dim=1, keepdim=True) - z.gather(1, index)).squeeze(1)
        if ctx.needs_input_grad[0]:
            ctx.share = share
            ctx.save_for_backward(_gradient(p, index, share), logits, index, negative, positive)
        return weighted(losses, share)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        gradient, logits, index, negative, positive = ctx.saved_tensors
        grad = grads[0].unsqueeze(1) if ctx.share is None else grads[0]
        if torch.is_grad_enabled():  # a second derivative is asked for: p must be a function of z
            p = torch.softmax(_assemble(logits, index, negative, positive), dim=1)
            gradient = _gradient(p.clone(), index, ctx.share) * grad
        elif ctx.share is None or grad.item() != 1.0:
            gradient = gradient * grad
        return gradient.to(logits.dtype), None, None, None, None


def _gradient(p: Tensor, index: Tensor, share: Share) -> Tensor:
    """(p − one-hot) times what each sample counts, in the memory of p."""
    if isinstance(share, Tensor):
        counted = share.unsqueeze(1)
        return p.mul_(counted).scatter_add_(1, index, -counted)
    scale = 1.0 if share is None else share
    scaled = p if scale == 1.0 else p.mul_(scale)
    return scaled.scatter_add_(1, index, p.new_full((), -scale).expand_as(index))
