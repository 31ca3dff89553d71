r"""Normalised weights: divided by a power of their norm, or of the class's frequency.

    TauNorm            f_y = w_y·Φ / ν_y^τ,   ν_y = ‖w_y‖₂  (Kang et al., 2020) or π_y  (LA eq. 3)
    WeightVectorNorm   in training   f_y = w_y·Φ / ‖w_y‖
                       at test       f_y = w_y·Φ / (‖w_y‖ · (n_y/n_max)^γ)

The bias is dropped, where `posthoc.WeightNormalization` divides it too. With ν = π TauNorm is the
re-scaling RS that EO compares with, up to a factor that all classes share.

In WeightVectorNorm (Kim and Kim, IEEE Access 2020: the WVN+RS of EO) weights of length one in
training let no class win by length; at test rarer classes get longer ones. The released code writes
the normalised weights back after each step; here the forward pass divides by the length.

Carries: None. They multiply logits, which is no change of prior (LA §4.2): measure it.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from longtail.core import PriorLike, Scores
from longtail.core.numbers import check_number
from longtail.core.tensors import as_tensor
from longtail.heads.distances import unit
from longtail.heads.head import LinearHead, SGDConfig
from longtail.heads.starts import random_rows
from longtail.posthoc import WeightNormalization
from longtail.ranges import NonNegative


class TauNorm(LinearHead):
    """Trained weights, normalised: nothing in it is trained, but τ can be set on validation data.

    τ = 0 leaves the weights, 1 makes all of length one. Without `train` ν is the norm.

    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.weight.data.copy_(torch.tensor([[3.0, 4.0], [0.6, 0.8]]))
    >>> TauNorm.from_linear(layer, tau=0.5)(torch.tensor([[1.0, 1.0]])).tolist()
    [[3.13, 1.4]]
    """

    needs_validation = True
    weight: Tensor
    train_log: Tensor | None
    _tau: Tensor

    def __init__(
        self, dim: int, num_classes: int, tau: float = 1.0, train: PriorLike | None = None
    ) -> None:
        super().__init__(dim, num_classes)
        self.register_buffer("weight", torch.zeros(num_classes, dim))
        self._hold("_tau", torch.tensor(check_number(tau, "tau"), dtype=torch.float64))
        prior = self._prior(train, "train")
        self._hold("train_log", None if prior is None else as_tensor(prior.log))

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, tau: float = 1.0, train: PriorLike | None = None
    ) -> TauNorm:
        """Take trained weights; the bias is dropped."""
        return cls(linear.in_features, linear.out_features, tau, train)._with_weight_of(linear)

    @property
    def tau(self) -> float:
        """τ; set it to what validation data say."""
        return self._tau.item()

    @tau.setter
    def tau(self, value: float) -> None:
        self._tau.fill_(check_number(value, "tau"))

    def log_nu(self, dtype: torch.dtype) -> Tensor:
        """Log ν of each class; 0 for a row of zeros, which then stays."""
        if self.train_log is not None:
            return self.train_log.to(self.weight.device, dtype)
        log_nu = self.weight.to(dtype).norm(dim=1).log()
        return torch.where(log_nu.isinf(), 0.0, log_nu)

    def choose_on(self, features: Iterable[Tensor], labels: Tensor) -> None:
        """Set τ to the best on validation samples, as far as they determine it."""
        logits = torch.cat([block @ self.weight.to(block).T for block in features])
        nu = self.log_nu(torch.float64).exp()
        best = WeightNormalization.fit(Scores(logits, labels), nu).tau
        if not (nu**-best).to(self.weight).isfinite().all():
            raise ValueError(
                f"the best tau on the validation samples is {best:.3g}, which {self.weight.dtype} "
                "cannot hold: the norms say nothing about these classes; train the weights first"
            )
        self.tau = best
        self.carry(None)

    def affine(self, dtype: torch.dtype) -> tuple[Tensor, None]:
        """The normalised weights."""
        shrunk = torch.exp(-self._tau.to(dtype) * self.log_nu(dtype))
        return self.weight.to(dtype) * shrunk[:, None], None


class WeightVectorNorm(LinearHead):
    """Linear logits of weights of length one; evaluation mode re-scales them. It has no bias.

    Without `train`, or with γ = 0, nothing is re-scaled. The released script has γ = 0.5.

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
        self.weight = random_rows(num_classes, dim, dim**-0.5)
        self.gamma = check_number(gamma, "gamma")
        prior = self._prior(train, "train")
        log_share = None if prior is None else as_tensor(prior.log - prior.log.max())
        self._hold("log_share", log_share)

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, train: PriorLike | None = None, gamma: NonNegative = 0.1
    ) -> WeightVectorNorm:
        """Start from trained weights; the bias is dropped."""
        return cls(linear.in_features, linear.out_features, train, gamma)._with_weight_of(linear)

    def affine(self, dtype: torch.dtype, rescaled: bool | None = None) -> tuple[Tensor, None]:
        """The weights of length one; in eval mode re-scaled, unless told."""
        weight = unit(self.weight.to(dtype))
        rescaled = not self.training if rescaled is None else rescaled
        if self.log_share is None or not rescaled:
            return weight, None
        return weight * torch.exp(-self.gamma * self.log_share.to(weight))[:, None], None

    def linear_map(self) -> tuple[Tensor, None]:
        """That of test time."""
        return self.affine(torch.float64, rescaled=True)
