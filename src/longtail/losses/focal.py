r"""Focal losses and class-balanced weights: what a model is sure of, or sees often, counts less.

    softmax:  ℓ(y, f) = α_y · (1 − p_y)^γ · (−log p_y),                          p = softmax(f)
    sigmoid:  ℓ(y, f) = (1 − σ(f_y))^γ · (−log σ(f_y)) + Σ_{c≠y} σ(f_c)^γ · (−log(1 − σ(f_c)))

Two different losses go by the name of focal. p_y is that of the plain cross-entropy; class weights
multiply outside. Code that takes p_y from a weighted cross-entropy has p_y^w in its place.
Class-balanced, a class counts by its effective number of samples, α_y ∝ (1 − β) / (1 − β^{n_y}),
Σ_y α_y = C: β = 0 weighs all classes alike; classes with far fewer than 1/(1 − β) samples weigh
1/n_y, those with far more weigh alike.

Carries: None, since what a sample counts depends on its own logits; α · train for the softmax form
with γ = 0, which is cross-entropy. Lin et al., ICCV 2017 (sigmoid); Cui et al., CVPR 2019 (α).
"""

from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike
from longtail.core.tensors import wide_dtype
from longtail.losses.kernel import Share, weighted
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss


class _SoftmaxFocal(SampleLoss):
    """Cross-entropy times (1 − p_y)^γ, with class weights α."""

    def __init__(
        self,
        train: PriorLike,
        gamma: float,
        alpha: ArrayLike | None,
        **options: Unpack[LossOptions],
    ) -> None:
        self_weighted = check_number(gamma, "gamma", least=0) > 0
        prior = label_prior(train, options)
        carried = prior if alpha is None else prior.reweighted(alpha)
        super().__init__(train, None if self_weighted else carried, alpha, **options)
        self.gamma = gamma

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        if self.gamma == 0:
            return super().label_losses(logits, labels, share)
        return weighted(self._faded(super().label_losses(logits, labels)), share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        nll = super().class_losses(logits)
        return nll if self.gamma == 0 else self._faded(nll)

    def _faded(self, nll: Tensor) -> Tensor:
        """(1 − p)^γ · nll for p = exp(−nll) and γ > 0."""
        # Where p rounds to one the loss and its slope are zero, but the power's own slope is
        # infinite for γ < 1, and zero times that is no number: it must not see those.
        certain = nll <= 0
        safe = nll.masked_fill(certain, 1.0)
        return ((-torch.expm1(-safe)) ** self.gamma * safe).masked_fill(certain, 0.0)


class Focal(_SoftmaxFocal):
    """The softmax form: cross-entropy times (1 − p_y)^γ.

    Args:
        train: The prior the batches follow.
        gamma: How fast a sample fades as p_y grows; 0 is cross-entropy.

    >>> loss = Focal([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.184)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 2.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, gamma, None, **options)


class ClassBalanced(_SoftmaxFocal):
    """Cross-entropy or focal loss with class-balanced weights.

    The weights depend on the counts themselves, not on their ratios. As all weights of a paper
    they divide by the number of samples in a mean; torch's own weighted mean, which divides by
    their sum, is `CrossEntropy(train, weight=class_balanced_weights(train))`.

    Args:
        train: The class counts, or a Prior made from them.
        beta: In [0, 1): how much samples of one class repeat each other.
        gamma: That of the softmax focal loss; None for cross-entropy.

    >>> loss = ClassBalanced([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.822)
    >>> loss.carried
    Prior([0.334, 0.333, 0.333])
    """

    def __init__(
        self,
        train: PriorLike,
        beta: float = 0.9999,
        gamma: float | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        alpha = class_balanced_weights(train, beta, options.get("label_smoothing", 0.0))
        super().__init__(train, 0.0 if gamma is None else gamma, alpha, **options)


class SigmoidFocal(SampleLoss):
    """The sigmoid form: one binary focal loss a class, summed over the classes.

    Start the bias of the last layer at −log(C−1), without weight decay: every σ is then 1/C, and
    the C−1 negatives of each sample do not drown the first steps. `weight` is that of the sample's
    class and multiplies the whole sum; `class_balanced_weights` there gives class-balanced focal.

    Args:
        train: The prior the batches follow.
        gamma: How fast a logit fades as it comes right; 0 is binary cross-entropy.

    >>> loss = SigmoidFocal([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.740)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 2.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, None, **options)  # σ is no softmax
        self.gamma = check_number(gamma, "gamma", least=0)

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        index = labels.unsqueeze(1)
        wrong_way = logits.scatter(1, index, -logits.gather(1, index))
        return weighted(self._binary(wrong_way).sum(dim=1), share)

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
