r"""Focal losses: what is already known counts less. Two different losses go by this name.

    softmax:  ℓ(y, f) = (1 − p_y)^γ · (−log p_y),                                p = softmax(f)
    sigmoid:  ℓ(y, f) = (1 − σ(f_y))^γ · (−log σ(f_y)) + Σ_{c≠y} σ(f_c)^γ · (−log(1 − σ(f_c)))

p_y is that of the plain cross-entropy; class weights multiply outside. Code that takes p_y from a
weighted cross-entropy has p_y^w in its place.

Carries: None, since what a sample counts depends on its own logits; the train prior for the
softmax form with γ = 0, which is cross-entropy. Lin et al., ICCV 2017 (sigmoid).
"""

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.prior import PriorLike
from longtail.core.tensors import wide_dtype
from longtail.losses import kernel
from longtail.losses.kernel import Share, weighted
from longtail.losses.loss import Loss, LossOptions, label_prior


class Focal(Loss):
    """The softmax form: cross-entropy times (1 − p_y)^γ.

    Args:
        train: The prior the batches follow.
        gamma: How fast a sample fades as p_y grows; 0 is cross-entropy.

    >>> import torch
    >>> loss = Focal([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.184)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 2.0, **options: Unpack[LossOptions]
    ) -> None:
        prior = label_prior(train, options)
        self_weighted = check_gamma(gamma) > 0
        super().__init__(train, None if self_weighted else prior, **options)
        self.gamma = gamma

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range."""
        return focal_losses(logits, labels, self.gamma, None)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        return focal_class_losses(logits, self.gamma)


class SigmoidFocal(Loss):
    """The sigmoid form: one binary focal loss a class, summed over the classes.

    Start the bias of the last layer at −log(C−1), without weight decay: every σ is then 1/C, and
    the C−1 negatives of each sample do not drown the first steps. `weight` is that of the sample's
    class and multiplies the whole sum; `class_balanced_weights` there gives class-balanced focal.

    Args:
        train: The prior the batches follow.
        gamma: How fast a logit fades as it comes right; 0 is binary cross-entropy.

    >>> import torch
    >>> loss = SigmoidFocal([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.740)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 2.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, None, **options)  # σ is no softmax
        self.gamma = check_gamma(gamma)

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range."""
        index = labels.unsqueeze(1)
        wrong_way = logits.scatter(1, index, -logits.gather(1, index))
        return self._binary(wrong_way).sum(dim=1)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        negative = self._binary(logits)
        # The sum over the others is all less one, which cancels only where that one is the
        # largest: there the sum is taken anew without it.
        top = negative.argmax(dim=1, keepdim=True)
        without_top = negative.scatter(1, top, 0.0).sum(dim=1, keepdim=True)
        others = (negative.sum(dim=1, keepdim=True) - negative).scatter(1, top, without_top)
        return self._binary(-logits) + others

    def _binary(self, wrong_way: Tensor) -> Tensor:
        """σ(x)^γ · log(1 + exp x), where x is the logit with the sign that makes it wrong."""
        x = wrong_way.to(wide_dtype(wrong_way.dtype))
        # Not F.softplus, which is linear above 20 and off by 2e-9 there.
        return (self.gamma * F.logsigmoid(x)).exp() * -F.logsigmoid(-x)


def focal_losses(logits: Tensor, labels: Tensor, gamma: float, share: Share) -> Tensor:
    """The softmax form of each sample, or their sum weighted by `share`."""
    if gamma == 0:
        return kernel.label_losses(logits, labels, None, None, share)
    return weighted(_faded(kernel.label_losses(logits, labels, None, None), gamma), share)


def focal_class_losses(logits: Tensor, gamma: float) -> Tensor:
    """The softmax form of each sample for every label."""
    nll = kernel.class_losses(logits, None, None)
    return nll if gamma == 0 else _faded(nll, gamma)


def check_gamma(gamma: float) -> float:
    """The γ of a focal loss, or a ValueError."""
    if not 0 <= gamma < torch.inf:
        raise ValueError(f"gamma must be a finite number, zero or more, got {gamma}")
    return gamma


def _faded(nll: Tensor, gamma: float) -> Tensor:
    """(1 − p)^γ · nll for p = exp(−nll) and γ > 0."""
    # Where p rounds to one the loss and its slope are zero, but the power's own slope is infinite
    # for γ < 1, and zero times that is no number: it must not see those.
    certain = nll <= 0
    safe = nll.masked_fill(certain, 1.0)
    return ((-torch.expm1(-safe)) ** gamma * safe).masked_fill(certain, 0.0)
