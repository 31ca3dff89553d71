r"""Plain and balanced cross-entropy: no margin, Δ = 0.

    ℓ(y, f) = α_y · (log Σ_{y'} exp f_{y'} − f_y),    α = 1 (LA eq. 1)  or  α_y = 1/π_y (LA eq. 4)

Carries: the train prior if α = 1; uniform if α = 1/π.
"""

from typing import Unpack

from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class CrossEntropy(MarginLoss):
    """Softmax cross-entropy; the logits carry the prior of the batches.

    >>> import torch
    >>> loss = CrossEntropy([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.741)
    >>> loss.carried
    Prior([0.7, 0.25, 0.05])
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        super().__init__(train, **options)


class Balanced(MarginLoss):
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
        super().__init__(train, alpha=1 / as_tensor(prior.probs), **options)
