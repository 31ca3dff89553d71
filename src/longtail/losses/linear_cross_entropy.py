r"""Cross-entropy of a linear layer over very many classes, without its logits.

    z_i = W x_i + b + log train − log carried
    ℓ_i = w_y (1−ε) (L_i − z_iy) + ε/C · Σ_c w_c (L_i − z_ic),        L_i = log Σ_c exp z_ic

that is the cross-entropy of retarget(logits, carried, train), with the options of the other losses;
under label smoothing ε the labels follow train smoothed. N × C logits of 256 samples and a million
classes take a gigabyte, and their gradient as much again. Here a block of the logits, of some
samples and some classes, lives in the cache: a first pass over the blocks adds up L_i, a second
makes each again and turns it into a block of the gradient g = a_i · ∂ℓ_i/∂z_ic,

    ∂W = gᵀ x,    ∂x = g W,    ∂b = Σ_i g_i.

The second product of x and W costs less than to write N × C numbers to memory and to read them. For
a mean or a sum both passes are made in the forward pass; nothing is left for the backward pass but
a factor. The losses of single samples (reduction "none") leave the second pass to the backward one.

Carries: `carried`, and class_weight · carried with class weights.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_choice, check_number, check_per_class, check_whole
from longtail.core.prior import PriorLike, check_same_classes, full_prior
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.losses.inputs import head_rows, in_place_of_ignored
from longtail.losses.kernel import for_autograd
from longtail.losses.loss import Reduction

_BLOCK = 2**18  # numbers of a block of logits, which stay in the cache
_ROWS = 1024  # samples of a block, at most


def linear_cross_entropy(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    train: PriorLike,
    carried: PriorLike | None,
    *,
    class_weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy of retarget(features @ weight.T + bias, carried, train), in little memory.

    `carried=train` is plain cross-entropy, uniform the logit-adjusted one. Second derivatives, and
    torch.func, build the logits after all. In training pass priors that were made once:
    to make one of a million counts takes a tenth of a second.

    Args:
        features: Of shape (N, D), or (N, ..., D) as a linear layer takes them.
        weight: The layer's, shape (C, D).
        bias: The layer's, shape (C,), or None.
        labels: Class indices of shape (N, ...).
        train: The prior that the batches follow.
        carried: What the logits are to carry when the labels follow train, smoothed by ε if they
            are smoothed. With class weights they then carry class_weight · carried.
        class_weight: The `weight` of the other losses: what each class counts.
        ignore_index: Samples with this class index do not count.
        reduction: A mean divides by the sum of the samples' class weights.
        label_smoothing: ε in [0, 1).

    >>> features, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[2.0, 0], [0.5, 0], [-1, 0]])
    >>> train, uniform = [70, 25, 5], [1, 1, 1]
    >>> linear_cross_entropy(features, weight, None, torch.tensor([1]), train, uniform)
    tensor(2.610)
    """
    check_choice(reduction, Reduction, "reduction")
    check_number(label_smoothing, "label_smoothing", least=0, below=1)
    check_whole(ignore_index, "ignore_index")
    rows, index, kept = head_rows(features, weight, bias, labels, ignore_index)
    wide = wide_dtype(torch.promote_types(features.dtype, weight.dtype))
    with torch.autocast(features.device.type, enabled=False):  # which would round the logits
        offset = _moved_bias(weight, bias, train, carried, label_smoothing, wide)
        own, every = torch.ones(len(index), dtype=wide, device=weight.device), None
        if class_weight is not None:
            checked = check_per_class(class_weight, len(weight), "class_weight", least="zero")
            every = as_tensor(checked).to(weight.device, wide)
            own = every[index]
        total = own.sum()
        if label_smoothing:
            every = own.new_ones(len(weight)) if every is None else every
            own, every = (1 - label_smoothing) * own, every * (label_smoothing / len(weight))
        else:
            every = None
        share = {"mean": 1 / total, "sum": torch.ones_like(total), "none": None}[reduction]
        inputs = (for_autograd(rows), for_autograd(weight), offset)
        losses = _value(*inputs, _Targets(index, own, every), share)
    return losses if reduction != "none" else in_place_of_ignored(losses, kept)


def _moved_bias(
    weight: Tensor,
    bias: Tensor | None,
    train: PriorLike,
    carried: PriorLike | None,
    label_smoothing: float,
    wide: torch.dtype,
) -> Tensor | None:
    """What is added to each class's product: the bias, and what moves the logits."""
    batches = full_prior(train, "train").smoothed(label_smoothing)
    check_same_classes(len(weight), batches, "weight has", "the train prior")
    offset = None if bias is None else for_autograd(bias).to(wide)
    if carried is train and not label_smoothing:
        return offset
    shift = as_tensor(prior_offset(carried, batches)).to(weight.device, wide)
    return shift if offset is None else offset + shift


class _Targets(NamedTuple):
    """What a sample's loss takes of which class: own · (L − z_y) + Σ_c every_c (L − z_c)."""

    labels: Tensor
    own: Tensor  # of each sample
    every: Tensor | None  # of each class, under label smoothing

    @property
    def taken(self) -> Tensor:
        """How often the loss of a sample has L_i: the sum of its targets."""
        return self.own if self.every is None else self.own + self.every.sum()


@torch.compiler.disable  # its loop over blocks would be unrolled
def _value(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: _Targets, share: Tensor | None
) -> Tensor:
    """The losses of the samples, or their sum times `share`."""
    if torch._C._are_functorch_transforms_active():
        return _plain(rows, weight, offset, targets, share)
    value: Tensor = _LinearLoss.apply(rows, weight, offset, targets, share)  # type: ignore[no-untyped-call]
    return value


def _plain(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: _Targets, share: Tensor | None
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
        targets: _Targets,
        share: Tensor | None,
    ) -> Tensor:
        inputs = (rows, weight, offset)
        losses, log_sums = _losses(*inputs, targets)
        ctx.targets, ctx.gradients = targets, None
        ctx.save_for_backward(*inputs, log_sums, share)
        needed = ctx.needs_input_grad[:3]
        if share is None:
            return losses
        if any(needed):
            ctx.gradients = _gradients(*inputs, targets, log_sums, share, needed)
        return losses.sum() * share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, log_sums, share = ctx.saved_tensors
        needed = ctx.needs_input_grad[:3]
        gradients, ctx.gradients = ctx.gradients, None  # handed out once: its taker may change it
        with torch.autocast(grads[0].device.type, enabled=False):
            if torch.is_grad_enabled():  # a second derivative is asked for
                value = _plain(*inputs, ctx.targets, share)
                wanted = [each for each, need in zip(inputs, needed, strict=True) if need]
                made = iter(torch.autograd.grad(value, wanted, grads[0], create_graph=True))
                gradients = tuple(next(made) if need else None for need in needed)
            elif gradients is None:  # of single samples, or asked for again
                factor = grads[0] if share is None else grads[0] * share
                gradients = _gradients(*inputs, ctx.targets, log_sums, factor, needed)
            elif not (grads[0].is_cpu and grads[0].item() == 1.0):
                gradients = tuple(None if each is None else each.mul_(grads[0]) for each in gradients)
        return (*gradients, None, None)


def _blocks(
    rows: Tensor, weight: Tensor, offset: Tensor | None, dtype: torch.dtype
) -> Iterator[tuple[slice, Tensor, Iterator[tuple[slice, Tensor, Tensor]]]]:
    """For some classes at a time, their weights and, for some samples at a time, their logits.

    A block of logits has one row a class: then no product has to turn the weights around. It is
    good until the next one is asked for.
    """
    at_once = max(1, min(len(rows), _ROWS))
    step = max(1, _BLOCK // at_once)
    turned = rows.to(dtype).T.contiguous()
    buffer = torch.empty(step * at_once, dtype=dtype, device=rows.device)

    def of_samples(
        part: Tensor, added: Tensor | None
    ) -> Iterator[tuple[slice, Tensor, Tensor]]:
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


def _own(targets: _Targets, classes: slice, samples: slice) -> tuple[Tensor, Tensor]:
    """Where in a block the labels of its samples are, as an index, and of which samples at all."""
    labels = targets.labels[samples]
    inside = (labels >= classes.start) & (labels < classes.stop)
    return (labels - classes.start).clamp(0, classes.stop - classes.start - 1), inside


def _losses(
    rows: Tensor, weight: Tensor, offset: Tensor | None, targets: _Targets
) -> tuple[Tensor, Tensor]:
    """The loss of each sample, and its L."""
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
    log_sums = top + total.log()
    # In this order there is no rounding of large logits where the label's is the largest.
    losses = own * (top - at_label + total.log())
    if every is not None:
        losses += every.sum() * log_sums - smooth
    return losses, log_sums


def _gradients(
    rows: Tensor,
    weight: Tensor,
    offset: Tensor | None,
    targets: _Targets,
    log_sums: Tensor,
    factor: Tensor,
    needed: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The gradients of the losses' sum, each times its factor, for the inputs that need one."""
    taken, every = targets.taken, targets.every
    dtype = taken.dtype
    counts = taken * factor
    taken = taken.masked_fill(taken == 0, 1.0)  # of weight zero: nothing is counted of it
    part_own = targets.own / taken
    of_rows = rows.new_zeros(rows.shape, dtype=dtype) if needed[0] else None
    of_weight = torch.empty_like(weight) if needed[1] else None
    of_offset = None if offset is None or not needed[2] else torch.zeros_like(offset)
    for classes, part, blocks in _blocks(rows, weight, offset, dtype):
        # Straight into its place, unless that is narrower than what is added up.
        into = of_weight[classes] if of_weight is not None else part
        sums = into if into.dtype == dtype else torch.empty_like(part)
        for samples, x, z in blocks:
            g = z.sub_(log_sums[samples]).exp_()
            index, inside = _own(targets, classes, samples)
            own = part_own[samples].masked_fill(~inside, 0.0)
            g.scatter_add_(0, index.unsqueeze(0), -own.unsqueeze(0))
            if every is not None:
                g.addr_(every[classes], 1 / taken[samples], alpha=-1)
            if of_rows is not None:
                of_rows[samples].addmm_(g.T, part)
            counted = counts[samples]
            if of_weight is not None:
                beta = 1 if samples.start else 0
                torch.addmm(sums, g, x * counted.unsqueeze(1), beta=beta, out=sums)
            if of_offset is not None:
                of_offset[classes] += g @ counted
        if of_weight is not None and sums is not into:
            into.copy_(sums)
    if of_rows is not None:
        of_rows = of_rows.mul_(counts.unsqueeze(1)).to(rows.dtype)
    return of_rows, of_weight, of_offset
