r"""Losses that are a change of prior: each is what it says that its logits carry.

    ℓ(y, f) = α_y · −log softmax(f + log α·π − log carried)[y],        π the prior of the labels

    cross-entropy           carried π             α = 1          (LA eq. 1)
    balanced                carried uniform       α = 1/π        (LA eq. 4)
    logit-adjusted          carried π^(1−τ)       α = 1          (LA eq. 10), a shift of τ·log π
    weighted                carried uniform       α = π^(τ−1)    (LA §5.2)
    consistent margins      carried uniform       α = δ/π        (LA theorem 1), a shift of log δ

Any α with uniform is consistent for the balanced error (theorem 1).

Experts that carry different priors are trained together, to disagree on purpose, by the mean of
their logit-adjusted losses, expert k with τ_k. Moved to a target t and averaged,

    1/K Σ_k (f^k + log t − log π^(1−τ_k)) = 1/K Σ_k f^k + log t − log π^(1−τ̄),    τ̄ = 1/K Σ_k τ_k.

Carries: what the table says; the mean of the experts' logits π^(1−τ̄), which is uniform for τ = 0,
1, 2 (Aimar et al., CVPR 2023).
"""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import Prior, PriorLike
from longtail.losses.loss import ComposedLoss, LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss


class CrossEntropy(SampleLoss):
    """Softmax cross-entropy; the logits carry the prior of the batches.

    >>> loss = CrossEntropy([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.741)
    >>> loss.carried
    Prior([0.7, 0.25, 0.05])
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        super().__init__(train, label_prior(train, options), **options)


class Balanced(SampleLoss):
    """Cross-entropy in which every class weighs 1/π_y, so that all count alike.

    It has little effect on data that can be separated: a solution of zero loss stays one. The
    mean divides by the number of samples, as in the paper: the loss is C times as large as usual.
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, Prior.uniform(prior.num_classes), 1 / prior.probs, **options)


class LogitAdjusted(SampleLoss):
    """Cross-entropy of logits shifted by τ·log π: predict with the raw logits afterwards.

    τ = 1 aims at the balanced error; 0 is plain cross-entropy.

    >>> loss = LogitAdjusted([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(2.610)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(self, train: PriorLike, tau: float = 1.0, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, prior.tempered(1 - check_number(tau, "tau")), **options)


class BalancedSoftmax(LogitAdjusted):
    """Balanced softmax: the logit-adjusted loss at τ = 1, under the name of its other paper."""

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        super().__init__(train, 1.0, **options)


class WeightedLogitAdjusted(SampleLoss):
    """Logit adjustment by τ, and class weights π^(τ−1) for the rest of the way (LA §5.2).

    τ = 1 is the logit-adjusted loss, τ = 0 the balanced one; all of them carry uniform.
    """

    def __init__(self, train: PriorLike, tau: float = 0.5, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        alpha = prior.probs ** (check_number(tau, "tau") - 1)
        super().__init__(train, Prior.uniform(prior.num_classes), alpha, **options)


class ConsistentMargin(SampleLoss):
    """Theorem 1's family: any δ > 0 gives margins log(δ_{y'}/δ_y) and weights δ_y/π_y.

    δ = π is the logit-adjusted loss, δ = 1 the balanced.
    """

    def __init__(self, train: PriorLike, delta: ArrayLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        alpha = check_per_class(delta, prior.num_classes, "delta") / prior.probs
        super().__init__(train, Prior.uniform(prior.num_classes), alpha, **options)


class Experts(ComposedLoss):
    """The mean of the logit-adjusted losses of several experts, each with a τ of its own.

    It takes logits of shape (N, C, K): what `heads.Experts` gives while it trains. In evaluation
    that head gives the mean over the experts, which carries `carried`. An expert of τ = 0 carries
    the training prior, of 1 uniform, of 2 its inverse.

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
        number = len(self.taus)
        if not isinstance(logits, Tensor):
            raise TypeError(
                f"a loss takes torch tensors, got {type(logits).__name__}; stack the logits of the "
                "experts: torch.stack(logits, dim=-1)"
            )
        if logits.dim() < 3 or logits.shape[-1] != number:
            raise ValueError(
                f"the loss of {number} experts takes logits of shape (N, C, {number}), got "
                f"{tuple(logits.shape)}; heads.Experts gives them in training: call model.train()"
            )
        each = zip(self._each(), logits.unbind(dim=-1), strict=True)
        values = [member(own.contiguous(), labels) for member, own in each]
        return torch.stack(values).mean(dim=0)

    def _each(self) -> list[LogitAdjusted]:
        return [member for member in self.members if isinstance(member, LogitAdjusted)]

    def extra_repr(self) -> str:
        """Its τ and what the mean carries, for print(loss)."""
        return f"taus={self.taus}, carried={self.carried!r}"
