r"""Two scales: one power of the prior for the positive, another for the negatives (LA §5.2).

    Δ_{yy'} = τ_neg·log π_{y'} − τ_pos·log π_y

The paper prints the opposite sign, which would not contain its own loss (10); with this one
τ_pos = τ_neg is the logit-adjusted loss and τ_pos = 0 the equalised one.

Carries: π^(1−τ) if both scales are τ, else None.
"""

from typing import Unpack

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class TwoScale(MarginLoss):
    """The margin loss between the equalised and the logit-adjusted.

    >>> import torch
    >>> loss = TwoScale([70, 25, 5], tau_pos=0.5, tau_neg=1.0)
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.987)
    """

    def __init__(
        self,
        train: PriorLike,
        tau_pos: float = 1.0,
        tau_neg: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        negative = check_number(tau_neg, "tau_neg") * as_tensor(prior.log)
        positive = check_number(tau_pos, "tau_pos") * as_tensor(prior.log)
        same = tau_pos == tau_neg
        super().__init__(train, negative=negative, positive=None if same else positive, **options)
