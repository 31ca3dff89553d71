r"""The adaptive margin: rarer positives ask for more (LA eq. 5), alone or on logit adjustment.

    Δ_{yy'} = π_y^(−1/4)        and        Δ_{yy'} = log(π_{y'}/π_y) + π_y^(−1/4)  (LA §6.2)

Carries: None. A margin on the positive alone is no change of prior, and the loss is not
consistent for the balanced error.
"""

from typing import Unpack

from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class Adaptive(MarginLoss):
    """Cross-entropy with margin π_y^(−1/4) between a positive and all negatives.

    LDAM is the same idea on cosines, with a scale and a largest margin.

    >>> import torch
    >>> loss = Adaptive([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(3.013)
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, positive=-(as_tensor(prior.probs) ** -0.25), **options)


class LogitAdjustedAdaptive(MarginLoss):
    """The logit-adjusted loss with the adaptive margin on top.

    >>> import torch
    >>> loss = LogitAdjustedAdaptive([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(3.967)
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        positive = as_tensor(prior.log) - as_tensor(prior.probs) ** -0.25
        super().__init__(train, negative=as_tensor(prior.log), positive=positive, **options)
