r"""Losses in which what a model is sure of, or sees often, counts less.

    focal      ℓ(y, f) = α_y · (1 − p_y)^γ · (−log p_y),                          p = softmax(f)
    sigmoid    ℓ(y, f) = (1 − σ(f_y))^γ · (−log σ(f_y)) + Σ_{c≠y} σ(f_c)^γ · (−log(1 − σ(f_c)))
    smoothing  ℓ(y, f) = −(1−ε_y)·log p_y − ε_y/(C−1) · Σ_{k≠y} log p_k

Two different losses go by the name of focal; class weights multiply outside of both, where code
that takes p_y from a weighted cross-entropy has p_y^w. Class-balanced, a class counts by its
effective number of samples, α_y ∝ (1 − β) / (1 − β^{n_y}), Σ_y α_y = C: classes with far fewer than
1/(1 − β) samples weigh 1/n_y, those with far more weigh alike. Label-aware smoothing has ε_y fall
from ε_head for the largest class, of which a model is surest, to ε_tail for the smallest: linearly
in the count, or as a quarter of a sine, which stays high for longer.

Carries: None, since what a sample counts depends on its own logits, and smoothed labels are no
change of prior; α · train for the softmax form with γ = 0, which is cross-entropy. Lin et al., ICCV
2017 (sigmoid); Cui et al., CVPR 2019 (α); Zhong et al., CVPR 2021 (MiSLAS, smoothing).
"""

from typing import Literal, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.class_weights import class_balanced_weights
from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike
from longtail.core.tensors import along_classes, wide_dtype
from longtail.losses.kernel import Share, weighted
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss
from longtail.ranges import FractionBelowOne, NonNegative


class _SoftmaxFocal(SampleLoss):
    """Cross-entropy times (1 − p_y)^γ, with class weights α."""

    def __init__(
        self, train: PriorLike, gamma: float, alpha: ArrayLike | None, options: LossOptions
    ) -> None:
        check_number(gamma, "gamma", least=0)
        prior = label_prior(train, options)
        carried = prior if alpha is None else prior.reweighted(alpha)
        super().__init__(train, None if gamma else carried, alpha, **options)
        self.gamma = gamma

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        if self.gamma == 0:
            return super().label_losses(logits, labels, share)
        return weighted(self._faded(super().label_losses(logits, labels)), share)

    def class_losses(self, logits: Tensor) -> Tensor:
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
    """The softmax form: γ says how fast a sample fades as p_y grows; 0 is cross-entropy."""

    def __init__(
        self, train: PriorLike, gamma: NonNegative = 2.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, gamma, None, options)


class ClassBalanced(_SoftmaxFocal):
    """Cross-entropy, or with γ the focal loss, with class-balanced weights.

    The weights depend on the counts themselves, not on their ratios; `beta` says how much samples
    of one class repeat each other. As all weights of a paper they divide by the number of samples
    in a mean; torch's own weighted mean, which divides by their sum, is
    `CrossEntropy(train, weight=class_balanced_weights(train))`.

    >>> loss = ClassBalanced([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.822)
    >>> loss.carried
    Prior([0.334, 0.333, 0.333])
    """

    def __init__(
        self,
        train: PriorLike,
        beta: FractionBelowOne = 0.9999,
        gamma: NonNegative | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        alpha = class_balanced_weights(train, beta, options.get("label_smoothing", 0.0))
        super().__init__(train, 0.0 if gamma is None else gamma, alpha, options)


class SigmoidFocal(SampleLoss):
    """The sigmoid form: one binary focal loss a class, summed over the classes.

    Start the bias of the last layer at −log(C−1), without weight decay: every σ is then 1/C, and
    the C−1 negatives of each sample do not drown the first steps. `weight` is that of the sample's
    class and multiplies the whole sum; `class_balanced_weights` there gives class-balanced focal.
    """

    def __init__(
        self, train: PriorLike, gamma: NonNegative = 2.0, **options: Unpack[LossOptions]
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


class LabelAwareSmoothing(SampleLoss):
    """Cross-entropy with label smoothing that follows the class counts.

    `head` and `tail` are ε of the largest and of the smallest class, `shape` is how it falls.
    """

    def __init__(
        self,
        train: PriorLike,
        head: FractionBelowOne = 0.4,
        tail: FractionBelowOne = 0.1,
        shape: Literal["linear", "sine"] = "linear",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(train, None, **options)
        if not (0 <= tail < 1 and 0 <= head < 1):
            raise ValueError(f"head and tail must lie in [0, 1), got {head} and {tail}")
        if shape not in ("linear", "sine"):
            raise ValueError(f'shape must be "linear" or "sine", got {shape!r}')
        # Where each class's count lies between the smallest, 0, and the largest, 1.
        probs = label_prior(train, options).probs
        span = probs.max() - probs.min()
        height = (probs - probs.min()) / span if span else np.ones_like(probs)
        height = np.sin(height * np.pi / 2) if shape == "sine" else height
        self._hold("epsilon", tail + (head - tail) * height)

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        every = self.class_losses(logits)
        return weighted(every.gather(1, labels.unsqueeze(1)).squeeze(1), share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        nll = -torch.log_softmax(logits.to(wide_dtype(logits.dtype)), dim=1)
        epsilon = along_classes(self._cast("epsilon", logits), logits)
        others = (nll.sum(dim=1, keepdim=True) - nll) / max(self.num_classes - 1, 1)
        return (1 - epsilon) * nll + epsilon * others
