r"""Margin losses that are no change of prior (LA eq. 11 with Δ_{yy'} = b_{y'} − a_y, a ≠ b).

    ℓ(y, f) = log[1 + Σ_{y'≠y} exp(Δ_{yy'} + s_{y'}·f_{y'} − s_y·f_y)]

    two scales        b = τ_neg·log π,  a = τ_pos·log π                                  (LA §5.2)
    adaptive          Δ_{yy'} = π_y^(−1/4)                                              (LA eq. 5)
    with adjustment   Δ_{yy'} = log(π_{y'}/π_y) + π_y^(−1/4)                             (LA §6.2)
    VS                s_y = (n_y/n_max)^γ,  a = b = τ·log π          (Kini et al., NeurIPS 2021)
    CDT               s_y = (n_y/n_max)^γ,  a = b = 0                          (Ye et al., 2020)

For two scales the paper prints the opposite sign, which would not contain its own loss (10); with
this one τ_pos = τ_neg is the logit-adjusted loss and τ_pos = 0 the equalised one.

Carries: None, and not consistent for the balanced error. A margin on the positive alone, or a
factor on the logits, is no change of prior; without one (τ_pos = τ_neg, γ = 0), π^(1−τ).
"""

from typing import Unpack

import numpy as np
from torch import Tensor

from longtail.core.arrays import ArrayLike, along_classes
from longtail.core.numbers import check_number
from longtail.core.prior import Prior, PriorLike
from longtail.losses import kernel
from longtail.losses.kernel import Share
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss


class MarginLoss(SampleLoss):
    """A loss given by its margins and a factor on the logits.

    Args:
        train: The prior the batches follow.
        carried: What it carries if it has neither `positive` nor `scale`; None otherwise.
        negative: b, or None for that of `carried`.
        positive: a, or None for a = b.
        scale: A factor on each class's logit, or None for ones.
    """

    positive: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        train: PriorLike,
        *,
        carried: Prior | None = None,
        negative: ArrayLike | None = None,
        positive: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(train, carried, **options)
        if negative is not None:
            self._hold("shift", negative)
        self._hold("positive", positive)
        self._hold("scale", scale)

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        positive = None if self.positive is None else self._cast("positive", logits)[labels]
        return kernel.label_losses(
            self._scaled(logits), labels, self._shift(logits), positive, share
        )

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        positive = None
        if self.positive is not None:
            positive = along_classes(self._cast("positive", logits), logits)
        return kernel.class_losses(self._scaled(logits), self._shift(logits), positive)

    def _scaled(self, logits: Tensor) -> Tensor:
        if self.scale is None:
            return logits
        return logits * along_classes(self._cast("scale", logits), logits)


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
        check_number(tau_neg, "tau_neg")
        if check_number(tau_pos, "tau_pos") == tau_neg:
            super().__init__(train, carried=prior.tempered(1 - tau_neg), **options)
        else:
            negative, positive = tau_neg * prior.log, tau_pos * prior.log
            super().__init__(train, negative=negative, positive=positive, **options)


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
        super().__init__(train, positive=-(prior.probs**-0.25), **options)


class LogitAdjustedAdaptive(MarginLoss):
    """The logit-adjusted loss with the adaptive margin on top.

    >>> import torch
    >>> loss = LogitAdjustedAdaptive([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(3.967)
    """

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        positive = prior.log - prior.probs**-0.25
        super().__init__(train, negative=prior.log, positive=positive, **options)


class VS(MarginLoss):
    """The vector-scaling loss: a factor and a shift for each class; predict with the raw logits.

    A factor below one makes the model raise a rare class's logit further to reach the same softmax.

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
        check_number(tau, "tau")
        if check_number(gamma, "gamma") == 0:
            super().__init__(train, carried=prior.tempered(1 - tau), **options)
        else:
            scale = np.exp(gamma * np.asarray(prior.log - prior.log.max()))
            negative = tau * prior.log if tau else None
            super().__init__(train, negative=negative, scale=scale, **options)


class CDT(VS):
    """Class-dependent temperatures: a factor for each class, VS without a shift.

    >>> import torch
    >>> loss = CDT([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.881)
    """

    def __init__(
        self, train: PriorLike, gamma: float = 0.3, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, gamma, 0.0, **options)
