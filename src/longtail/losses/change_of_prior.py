r"""Losses that are a change of prior: each is what it says that its logits carry.

    ℓ(y, f) = α_y · −log softmax(f + log α·π − log carried)[y],        π the prior of the labels

    cross-entropy           carried π             α = 1          (LA eq. 1)
    balanced                carried uniform       α = 1/π        (LA eq. 4)
    logit-adjusted          carried π^(1−τ)       α = 1          (LA eq. 10), a shift of τ·log π
    weighted                carried uniform       α = π^(τ−1)    (LA §5.2)
    consistent margins      carried uniform       α = δ/π        (LA theorem 1), a shift of log δ

Carries: what the table says. Any α with uniform is consistent for the balanced error (theorem 1).
"""

from typing import Unpack

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import Prior, PriorLike
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss


class CrossEntropy(SampleLoss):
    """Softmax cross-entropy; the logits carry the prior of the batches.

    >>> import torch
    >>> loss = CrossEntropy([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.741)
    >>> loss.carried
    Prior([0.7, 0.25, 0.05])
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        super().__init__(train, label_prior(train, options), **options)


class Balanced(SampleLoss):
    """Cross-entropy in which every class weighs 1/π_y, so that all count alike.

    It has little effect on data that can be separated: a solution of zero loss stays one. The
    mean divides by the number of samples, as in the paper: the loss is C times as large as usual.

    >>> import torch
    >>> loss = Balanced([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(6.965)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, Prior.uniform(prior.num_classes), 1 / prior.probs, **options)


class LogitAdjusted(SampleLoss):
    """Cross-entropy of logits shifted by τ·log π: predict with the raw logits afterwards.

    Args:
        train: The prior the batches follow.
        tau: 1 aims at the balanced error; 0 is plain cross-entropy.

    >>> import torch
    >>> loss = LogitAdjusted([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(2.610)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    >>> LogitAdjusted([70, 25, 5], tau=0.5).carried
    Prior([0.536, 0.32, 0.143])
    """

    def __init__(self, train: PriorLike, tau: float = 1.0, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, prior.tempered(1 - check_number(tau, "tau")), **options)


class BalancedSoftmax(LogitAdjusted):
    """Balanced softmax: the logit-adjusted loss at τ = 1, under the name of its other paper.

    >>> import torch
    >>> loss = BalancedSoftmax([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(2.610)
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        super().__init__(train, 1.0, **options)


class WeightedLogitAdjusted(SampleLoss):
    """Logit adjustment by τ, and class weights π^(τ−1) for the rest of the way (LA §5.2).

    τ = 1 is the logit-adjusted loss, τ = 0 the balanced one; all of them carry uniform.

    >>> import torch
    >>> loss = WeightedLogitAdjusted([70, 25, 5], tau=0.5)
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(4.303)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(self, train: PriorLike, tau: float = 0.5, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        alpha = prior.probs ** (check_number(tau, "tau") - 1)
        super().__init__(train, Prior.uniform(prior.num_classes), alpha, **options)


class ConsistentMargin(SampleLoss):
    """Theorem 1's family: any δ > 0 gives margins log(δ_{y'}/δ_y) and weights δ_y/π_y.

    Args:
        train: The prior the batches follow, π.
        delta: One positive number a class. δ = π is the logit-adjusted loss, δ = 1 the balanced.

    >>> import torch
    >>> loss = ConsistentMargin([70, 25, 5], delta=[3, 2, 1])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1])).item()
    16.5
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(self, train: PriorLike, delta: ArrayLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        alpha = check_per_class(delta, prior.num_classes, "delta") / prior.probs
        super().__init__(train, Prior.uniform(prior.num_classes), alpha, **options)
