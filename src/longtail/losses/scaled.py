r"""Losses that scale the logits of each class: VS and CDT.

    VS:   cross-entropy of  f_y · (n_y/n_max)^γ + τ·log π_y
    CDT:  cross-entropy of  f_y · (n_y/n_max)^γ

Predict with the raw logits f. A factor below one makes the model raise a rare class's logit
further to reach the same softmax.

Carries: None for γ ≠ 0, since a factor on the logits is no change of prior.
Kini et al., NeurIPS 2021 (VS); Ye et al., 2020 (CDT).
"""

from typing import Unpack

from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import Prior, PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class VS(MarginLoss):
    """The vector-scaling loss: a factor and a shift for each class.

    >>> import torch
    >>> loss = VS([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(2.736)
    """

    def __init__(
        self,
        train: PriorLike,
        gamma: float = 0.3,
        tau: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        shift = check_number(tau, "tau") * as_tensor(prior.log)
        super().__init__(train, scale=_scale(prior, gamma), negative=shift, **options)


class CDT(MarginLoss):
    """Class-dependent temperatures: a factor for each class.

    >>> import torch
    >>> loss = CDT([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.881)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 0.3, **options: Unpack[LossOptions]
    ) -> None:
        prior = label_prior(train, options)
        super().__init__(train, scale=_scale(prior, gamma), **options)


def _scale(prior: Prior, gamma: float) -> Tensor | None:
    check_number(gamma, "gamma")
    return (
        None if gamma == 0 else (gamma * (as_tensor(prior.log) - as_tensor(prior.log).max())).exp()
    )
