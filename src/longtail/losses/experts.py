r"""Experts that carry different priors, trained together (balanced product of experts).

    ℓ(y, f¹ … f^K) = 1/K Σ_k ℓ_{τ_k}(y, f^k),    ℓ_τ the logit-adjusted loss (LA eq. 10)

Each expert is trained to carry its own prior π^(1−τ_k), so that they disagree on purpose. Moved to
a target and averaged,

    1/K Σ_k (f^k + log t − log π^(1−τ_k)) = 1/K Σ_k f^k + log t − log π^(1−τ̄),    τ̄ = 1/K Σ_k τ_k,

so the mean of their logits carries π^(1−τ̄): uniform for τ = 0, 1, 2.

Carries: π^(1−τ̄), by the mean of the experts' logits. Aimar et al., CVPR 2023.
"""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from longtail.core.prior import Prior, PriorLike
from longtail.losses.change_of_prior import LogitAdjusted
from longtail.losses.loss import ComposedLoss, LossOptions


class Experts(ComposedLoss):
    """The mean of the logit-adjusted losses of several experts, each with a τ of its own.

    Call it as `loss(logits, labels)` with logits of shape (N, C, K): what `heads.Experts` gives
    while it trains. In evaluation that head gives the mean over the experts, which carries
    `carried`; `experts_carried` says what each of them carries alone.

    Args:
        train: The prior the batches follow.
        taus: τ of each expert: 0 carries the training prior, 1 uniform, 2 its inverse.

    >>> loss = Experts([70, 25, 5], taus=(0.0, 1.0, 2.0))
    >>> loss(torch.zeros(2, 3, 3), torch.tensor([0, 2]))
    tensor(1.846)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    >>> loss.experts_carried[0], loss.experts_carried[2]
    (Prior([0.7, 0.25, 0.05]), Prior([0.0562, 0.157, 0.787]))
    """

    def __init__(
        self,
        train: PriorLike,
        taus: Sequence[float] = (0.0, 1.0, 2.0),
        **options: Unpack[LossOptions],
    ) -> None:
        if not len(taus):
            raise ValueError("experts need a tau each, got none; give taus such as (0, 1, 2)")
        super().__init__()
        self.taus = tuple(float(tau) for tau in taus)
        self.members = nn.ModuleList(LogitAdjusted(train, tau, **options) for tau in taus)
        self._take_options()

    @property
    def experts_carried(self) -> tuple[Prior | None, ...]:
        """What the logits of each expert carry."""
        return tuple(member.carried for member in self._each())

    @property
    def carried(self) -> Prior | None:
        """What the mean of their logits carries: the geometric mean of what each carries."""
        logs = [prior.log for prior in self.experts_carried if prior is not None]
        return Prior.from_log(np.mean(logs, axis=0)) if len(logs) == len(self.taus) else None

    @property
    def part(self) -> LogitAdjusted:
        """Any of them, but for what is carried."""
        return self._each()[0]

    def forward(self, logits: Tensor, labels: Tensor, features: Tensor | None = None) -> Tensor:
        """The mean over the experts of their reduced losses."""
        if not isinstance(logits, Tensor):
            raise TypeError(
                f"a loss takes torch tensors, got {type(logits).__name__}; stack the logits of the "
                "experts: torch.stack(logits, dim=-1)"
            )
        if logits.dim() < 3 or logits.shape[-1] != len(self.taus):
            raise ValueError(
                f"the loss of {len(self.taus)} experts takes logits of shape (N, C, "
                f"{len(self.taus)}), got {tuple(logits.shape)}; heads.Experts gives them while it "
                "trains: call model.train()"
            )
        values = [
            member(logits[..., at].contiguous(), labels) for at, member in enumerate(self._each())
        ]
        return torch.stack(values).mean(dim=0)

    def _each(self) -> list[LogitAdjusted]:
        return [member for member in self.members if isinstance(member, LogitAdjusted)]

    def extra_repr(self) -> str:
        """Its τ and what the mean carries, for print(loss)."""
        return f"taus={self.taus}, carried={self.carried!r}"
