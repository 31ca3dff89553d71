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

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_choice, check_number, check_per_class, check_whole
from longtail.core.prior import PriorLike, check_same_classes, full_prior
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.losses.inputs import head_rows, in_place_of_ignored
from longtail.losses.kernel import for_autograd
from longtail.losses.linear_kernel import Targets, linear_losses
from longtail.losses.loss import Reduction


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
        losses = linear_losses(*inputs, Targets(index, own, every), share)
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
