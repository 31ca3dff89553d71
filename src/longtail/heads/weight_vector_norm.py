r"""Weight-vector normalisation (WVN), and re-scaling by frequency at test time (RS).

    in training   f_y = w_y·Φ / ‖w_y‖
    at test       f_y = w_y·Φ / (‖w_y‖ · (n_y/n_max)^γ)

Weights of length one in training let no class win by length; at test rarer classes get longer
ones. The released code writes the normalised weights back after each step; here the length is
divided out in the forward pass, so the gradient has no part along w.

Carries: None. It multiplies logits, which is no change of prior: measure it.
Kim and Kim, IEEE Access 2020: the WVN+RS of EO.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longtail.core import PriorLike
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.tensors import as_tensor
from longtail.heads.distances import unit
from longtail.heads.head import LinearHead, SGDConfig, copy_rows
from longtail.ranges import NonNegative


class WeightVectorNorm(LinearHead):
    """Linear logits of weights of length one; evaluation mode re-scales them. It has no bias.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        train: The training prior or class counts, for re-scaling; without it there is none.
        gamma: γ; 0 does not re-scale. The released script uses 0.5.

    >>> head = WeightVectorNorm(2, 2, train=[100, 25], gamma=0.5)
    >>> _ = head.weight.data.copy_(torch.tensor([[2.0, 0.0], [0.0, 5.0]]))
    >>> head(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 4.0]]
    >>> head.train(False)(torch.tensor([[3.0, 4.0]])).tolist()
    [[3.0, 8.0]]
    """

    sgd = SGDConfig(lr=0.2, weight_decay=5e-4, sampler="instance")
    takes_prior = False
    log_share: Tensor | None

    def __init__(
        self, dim: int, num_classes: int, train: PriorLike | None = None, gamma: NonNegative = 0.1
    ) -> None:
        super().__init__(dim, num_classes)
        self.weight = nn.Parameter(torch.empty(num_classes, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.gamma = check_number(gamma, "gamma")
        prior = None if train is None else full_prior(train, "train")
        if prior is not None:
            check_same_classes(num_classes, prior, "the head has", "the train prior")
        log_share = None if prior is None else as_tensor(prior.log - prior.log.max())
        self._hold("log_share", log_share)

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, train: PriorLike | None = None, gamma: NonNegative = 0.1
    ) -> WeightVectorNorm:
        """Start from trained weights; the bias is dropped."""
        head = cls(linear.in_features, linear.out_features, train, gamma).to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        return head

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, None]:
        """The weights of length one; in eval mode re-scaled."""
        return self._weight(dtype, rescaled=not self.training), None

    def linear_map(self) -> tuple[Tensor, None]:
        """That of test time."""
        return self._weight(torch.float64, rescaled=True), None

    def _weight(self, dtype: torch.dtype, rescaled: bool) -> Tensor:
        weight = unit(self.weight.to(dtype))
        if self.log_share is None or not rescaled:
            return weight
        return weight * torch.exp(-self.gamma * self.log_share.to(weight))[:, None]
