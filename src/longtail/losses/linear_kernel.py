"""The kernel of linear_cross_entropy: losses and gradients from blocks of logits, one at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 2**20  # numbers of a block of logits, which stay in the cache
_SAMPLES = 64, 1024  # of a block: fewer count as so many, and there are no more

Needed: TypeAlias = tuple[bool, bool, bool]
Gradients: TypeAlias = tuple[Tensor | None, Tensor | None, Tensor | None]


class Targets(NamedTuple):
    """What a sample's loss takes of which class: own · (L − z_y) + Σ_c every_c (L − z_c)."""

    labels: Tensor
    own: Tensor  # of each sample
    every: Tensor | None  # of each class, under label smoothing

    @property
    def taken(self) -> Tensor:
        """How often the loss of a sample has L_i: the sum of its targets."""
        return self.own if self.every is None else self.own + self.every.sum()


# A compiler would unroll the loop over the blocks.
@torch.compiler.disable  # type: ignore[untyped-decorator]
def linear_losses(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: Targets, share: Tensor | None
) -> Tensor:
    """The losses of the samples, or their sum times `share`."""
    if torch._C._are_functorch_transforms_active():
        return _plain(rows, weight, offset, targets, share)
    if not torch.is_grad_enabled():  # which a Function does not see
        rows, weight = rows.detach(), weight.detach()
        offset = None if offset is None else offset.detach()
    value: Tensor = _LinearLoss.apply(rows, weight, offset, targets, share)  # type: ignore[no-untyped-call]
    return value


def _plain(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: Targets, share: Tensor | None
) -> Tensor:
    """The same as torch differentiates it, with all the logits."""
    wide = targets.own.dtype
    log_p = F.log_softmax(F.linear(rows.to(wide), weight.to(wide), offset), dim=1)
    losses = -targets.own * log_p.gather(1, targets.labels.unsqueeze(1)).squeeze(1)
    if targets.every is not None:
        losses = losses - log_p @ targets.every
    return losses if share is None else losses.sum() * share


class _LinearLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        offset: Tensor | None,
        targets: Targets,
        share: Tensor | None,
    ) -> Tensor:
        inputs = (rows, weight, offset)
        losses, top, total = _losses(*inputs, targets)
        ctx.targets, ctx.gradients = targets, None
        ctx.save_for_backward(*inputs, top, total, share)
        needed = ctx.needs_input_grad[:3]
        if share is None:
            return losses
        if any(needed):
            ctx.gradients = _gradients(*inputs, targets, (top, total), share, needed)
        return losses.sum() * share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, offset, top, total, share = ctx.saved_tensors
        needed, targets, grad = ctx.needs_input_grad[:3], ctx.targets, grads[0]
        gradients, ctx.gradients = ctx.gradients, None  # handed out once: its taker may change it
        with torch.autocast(grad.device.type, enabled=False):
            if torch.is_grad_enabled():  # a second derivative is asked for
                value = _plain(rows, weight, offset, targets, share)
                inputs = zip((rows, weight, offset), needed, strict=True)
                wanted = [each for each, is_needed in inputs if is_needed]
                made = iter(torch.autograd.grad(value, wanted, grad, create_graph=True))
                gradients = [next(made) if is_needed else None for is_needed in needed]
            elif gradients is None:  # of single samples, or asked for again
                factor = grad if share is None else grad * share
                sums = (top, total)
                gradients = _gradients(rows, weight, offset, targets, sums, factor, needed)
            elif not grad.is_cpu or grad.item() != 1.0:
                gradients = [None if each is None else each.mul_(grad) for each in gradients]
        return (*gradients, None, None)


def _blocks(
    rows: Tensor, weight: Tensor, offset: Tensor | None, dtype: torch.dtype
) -> Iterator[tuple[slice, Tensor, Iterator[tuple[slice, Tensor, Tensor]]]]:
    """For some classes at a time, their weights and, for some samples at a time, their logits.

    A block of logits has one row a class: then no product has to turn the weights around. It is
    good until the next one is asked for.
    """
    fewest, most = _SAMPLES
    at_once = max(1, min(len(rows), most))
    step = max(1, _BLOCK // max(at_once, fewest))
    turned = rows.to(dtype).T.contiguous()
    buffer = torch.empty(step * at_once, dtype=dtype, device=rows.device)

    def of_samples(part: Tensor, added: Tensor | None) -> Iterator[tuple[slice, Tensor, Tensor]]:
        for first in range(0, len(rows), at_once):
            samples = slice(first, first + at_once)
            x = turned[:, samples]
            z = buffer[: len(part) * x.shape[1]].view(len(part), x.shape[1])
            if added is None:
                torch.mm(part, x, out=z)
            else:
                torch.addmm(added.unsqueeze(1), part, x, out=z)
            yield samples, x.T, z

    for first in range(0, len(weight), step):
        classes = slice(first, min(first + step, len(weight)))
        part = weight[classes].to(dtype)
        yield classes, part, of_samples(part, None if offset is None else offset[classes])


def _own(targets: Targets, classes: slice, samples: slice) -> tuple[Tensor, Tensor]:
    """Where in a block the labels of its samples are, as an index, and of which samples at all."""
    labels = targets.labels[samples]
    inside = (labels >= classes.start) & (labels < classes.stop)
    return (labels - classes.start).clamp(0, classes.stop - classes.start - 1), inside


def _losses(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: Targets
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each sample, its largest logit t and Σ_c exp(z_c − t): L = t + log of the sum."""
    own, every = targets.own, targets.every
    lowest = torch.finfo(own.dtype).min
    top, total = torch.full_like(own, lowest), torch.zeros_like(own)
    at_label, smooth = torch.zeros_like(own), torch.zeros_like(own)
    for classes, _, blocks in _blocks(rows, weight, offset, own.dtype):
        for samples, _, z in blocks:
            index, inside = _own(targets, classes, samples)
            here = z.gather(0, index.unsqueeze(0)).squeeze(0)
            at_label[samples] = torch.where(inside, here, at_label[samples])
            if every is not None:
                smooth[samples] += every[classes] @ z
            old = top[samples]
            new = torch.maximum(old, z.amax(dim=0))
            total[samples] *= (old - new).exp()
            total[samples] += z.sub_(new).exp_().sum(dim=0)
            top[samples] = new
    # In this order there is no rounding of large logits where the label's is the largest.
    losses = own * (top - at_label + total.log())
    if every is not None:
        losses += every.sum() * (top + total.log()) - smooth
    return losses, top, total


def _gradients(
    rows: Tensor,
    weight: Tensor,
    offset: Tensor | None,
    targets: Targets,
    sums: tuple[Tensor, Tensor],
    factor: Tensor,
    needed: Needed,
) -> Gradients:
    """The gradients of the losses' sum, each times its factor, for the inputs that need one."""
    (top, total), every = sums, targets.every
    # A block holds the gradient times total/taken, which the products divide by: one pass less.
    taken = targets.taken.masked_fill(targets.taken == 0, 1.0)  # where nothing is taken
    dtype, counts, scale = total.dtype, targets.taken * factor / total, total / taken
    of_rows = rows.new_zeros(rows.shape, dtype=dtype) if needed[0] else None
    filled = torch.empty_like if len(rows) else torch.zeros_like  # by the blocks, if there are any
    of_weight = filled(weight) if needed[1] else None
    of_offset = None if offset is None or not needed[2] else torch.zeros_like(offset)
    for classes, part, blocks in _blocks(rows, weight, offset, dtype):
        into = None if of_weight is None else of_weight[classes]
        # Added up in its place, unless that is narrower.
        added = into if into is None or into.dtype == dtype else torch.empty_like(part)
        for samples, x, z in blocks:
            g = z.sub_(top[samples]).exp_()
            index, inside = _own(targets, classes, samples)
            own = (scale * targets.own)[samples].masked_fill(~inside, 0.0)
            g.scatter_add_(0, index.unsqueeze(0), -own.unsqueeze(0))
            if every is not None:
                g.addr_(every[classes], scale[samples], alpha=-1)
            if of_rows is not None:
                of_rows[samples].addmm_(g.T, part)
            counted = counts[samples]
            if added is not None:
                beta = 1 if samples.start else 0
                torch.addmm(added, g, x * counted.unsqueeze(1), beta=beta, out=added)
            if of_offset is not None:
                of_offset[classes] += g @ counted
        if into is not None and added is not None and added is not into:
            into.copy_(added)
    if of_rows is not None:
        of_rows = of_rows.mul_(counts.unsqueeze(1)).to(rows.dtype)
    return of_rows, of_weight, of_offset
