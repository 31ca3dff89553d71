r"""The estimated-offset objective (EO eq. 6).

    ℓ = −log softmax(f)[y] + λ₁·‖Φ − c_y‖² + λ₂·(−H(softmax(−w̃₀))),        w̃₀_k = ½ c_k·w_k

f are the logits of `heads.EstimatedOffset`, which subtracts w̃₀. The second term draws features
to their centre, the third the offsets to one value (the uniform constraint, by entropy H).

The centres follow the centre-loss rule alone: they move towards the features of their class in
training mode, after each value. No gradient reaches them, neither of the centre term nor through
the offset; the weights get both.

Carries: None. The offset takes the place of a bias, and no loss ties it to a prior: measure it.
"""

from typing import Protocol, Unpack

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike, full_prior
from longtail.losses.center import moved_centers
from longtail.losses.loss import LossOptions
from longtail.losses.regularizer import RegularizedLoss, Regularizer
from longtail.losses.sample_loss import SampleLoss


class OffsetHead(Protocol):
    """What the loss needs of a head: `heads.EstimatedOffset`, or one alike."""

    weight: Tensor
    centers: Tensor


class EstimatedOffset(RegularizedLoss):
    """Cross-entropy with the centre term and the uniform constraint of the head's offset.

    Call it as `loss(head(features), labels, features=features)`. The two ablations of the paper:
    `uniform_weight=0` is "w/o UC"; a head with `use_offset=False` is "UC only".

    Args:
        train: The prior the batches follow.
        head: The head that makes the logits. It is held, not registered: its parameters stay the
            model's.
        center_weight: λ₁.
        uniform_weight: λ₂.
        rate: How far the centres move towards the batch, as in the centre loss.
        gather: Whether to see the batches of all processes.

    >>> import longtail as lt
    >>> head = lt.heads.EstimatedOffset(2, 3)
    >>> _ = head.weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
    >>> loss = EstimatedOffset([70, 25, 5], head=head)
    >>> features = torch.tensor([[1.0, 0.5], [0.0, 2.0]])
    >>> loss(head(features), torch.tensor([0, 1]), features=features).item()
    1.860
    >>> head.centers.tolist()                            # moved halfway of 1/(1 + n)
    [[0.25, 0.125], [0.0, 0.5], [0.0, 0.0]]
    """

    def __init__(
        self,
        train: PriorLike,
        head: OffsetHead,
        center_weight: float = 1.0,
        uniform_weight: float = 1.0,
        rate: float = 0.5,
        *,
        gather: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = full_prior(train, "train")
        if head.weight.shape[0] != prior.num_classes:
            raise ValueError(
                f"the head has {head.weight.shape[0]} classes, the prior {prior.num_classes}"
            )
        terms = _OffsetTerms(head, center_weight, uniform_weight, rate, gather=gather)
        # Carries None: the offset stands where a bias would learn the prior.
        super().__init__(SampleLoss(prior, None, **options), terms, 1.0, on="features")


class _OffsetTerms(Regularizer):
    def __init__(
        self,
        head: OffsetHead,
        center_weight: float,
        uniform_weight: float,
        rate: float,
        *,
        gather: bool,
    ) -> None:
        super().__init__(gather=gather)
        self._held = (head,)  # in a tuple: nn.Module would register the head itself
        self.center_weight = check_number(center_weight, "center_weight", least=0)
        self.uniform_weight = check_number(uniform_weight, "uniform_weight", least=0)
        self.rate = check_number(rate, "rate", least=0, most=1)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """λ₁·‖Φ − c_y‖² of each row, and the uniform constraint in every one."""
        (head,) = self._held
        centers = head.centers.to(rows)
        offset = 0.5 * (centers * head.weight.to(rows)).sum(dim=1)
        log_share = torch.log_softmax(-offset, dim=0)
        negative_entropy = (log_share.exp() * log_share).sum()
        values = self.center_weight * (rows - centers[labels]).square().sum(dim=1)
        if self.training:
            # A new tensor: backward, and a compiler, need the centres as they were.
            head.centers = moved_centers(head.centers, rows, labels, self.rate)
        return values + self.uniform_weight * negative_entropy
