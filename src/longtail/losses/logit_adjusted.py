r"""The logit-adjusted loss and the consistent family around it (LA eq. 10 and theorem 1).

    ℓ(y, f) = α_y · log[1 + Σ_{y'≠y} (δ_{y'}/δ_y) · exp(f_{y'} − f_y)]

Logit-adjusted: δ = π^τ, α = 1. Weighted: δ = π^τ, α = π^(τ−1). Any δ with α = δ/π is consistent
for the balanced error (theorem 1).

Carries: π^(1−τ) for the logit-adjusted loss, which is uniform at τ = 1; uniform for the others.
"""

from typing import Unpack

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor, per_class_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class LogitAdjusted(MarginLoss):
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
        super().__init__(train, negative=check_number(tau, "tau") * as_tensor(prior.log), **options)


class BalancedSoftmax(MarginLoss):
    """Balanced softmax: the logit-adjusted loss at τ = 1, under the name of its other paper.

    >>> import torch
    >>> loss = BalancedSoftmax([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(2.610)
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, negative=as_tensor(prior.log), **options)


class WeightedLogitAdjusted(MarginLoss):
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
        shift = check_number(tau, "tau") * as_tensor(prior.log)
        super().__init__(
            train, alpha=((tau - 1) * as_tensor(prior.log)).exp(), negative=shift, **options
        )


class ConsistentMargin(MarginLoss):
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
        given = per_class_tensor(delta, prior.num_classes, "delta")
        super().__init__(
            train, alpha=given / as_tensor(prior.probs), negative=given.log(), **options
        )
