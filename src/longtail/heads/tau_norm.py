r"""τ-normalisation: weights divided by a power of their norm, or of the class's frequency.

    f_y = w_y·Φ / ν_y^τ,        ν_y = ‖w_y‖₂  (Kang et al., 2020)   or   π_y  (LA eq. 3)

The bias is dropped, where `posthoc.WeightNormalization` divides it too. With ν = π it is the
re-scaling RS that EO compares with, up to a factor that all classes share.

Carries: None. It multiplies logits, which is no change of prior (LA §4.2).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from longtail.core import PriorLike, Scores
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.tensors import as_tensor
from longtail.heads.head import LinearHead, copy_rows
from longtail.posthoc import WeightNormalization


class TauNorm(LinearHead):
    """Trained weights, normalised: nothing in it is trained, but τ can be set on held-out data.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        tau: 0 leaves the weights, 1 makes all of length one.
        train: The prior π of ν = π^τ, or class counts; without it ν is the norm.

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
        prior = None if train is None else full_prior(train, "train")
        if prior is not None:
            check_same_classes(num_classes, prior, "the head has", "the train prior")
        self._hold("train_log", None if prior is None else as_tensor(prior.log))

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, tau: float = 1.0, train: PriorLike | None = None
    ) -> TauNorm:
        """Take trained weights; the bias is dropped."""
        head = cls(linear.in_features, linear.out_features, tau, train).to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        return head

    @property
    def tau(self) -> float:
        """τ; set it to what held-out data say."""
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
