r"""Margin losses that are no change of prior (LA eq. 11 with Δ_{yy'} = b_{y'} − a_y, a ≠ b).

    ℓ(y, f) = log[1 + Σ_{y'≠y} exp(Δ_{yy'} + s_{y'}·f_{y'} − s_y·f_y)]

    two scales        b = τ_neg·log π,  a = τ_pos·log π                                  (LA §5.2)
    adaptive          b = 0,  a = −π^(−1/4)                                             (LA eq. 5)
    with adjustment   b = log π,  a = log π − π^(−1/4)                                   (LA §6.2)
    VS                a = b = τ·log π,  s_y = (n_y/n_max)^γ          (Kini et al., NeurIPS 2021)
    CDT               a = b = 0,  s_y = (n_y/n_max)^γ                          (Ye et al., 2020)
    LDAM              b = 0,  a_y = −s·m·(n_y/n_min)^(−1/4),  all s_y = s (Cao et al., NeurIPS 2019)

For two scales the paper prints the opposite sign, which would not contain its own loss (10); with
this one τ_pos = τ_neg is the logit-adjusted loss and τ_pos = 0 the equalised one.

Carries: None, and not consistent for the balanced error: a margin on the positive alone, or a
factor on the logits, is no change of prior. Without either (τ_pos = τ_neg, γ = 0), π^(1−τ).
"""

from typing import Literal, Unpack

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number
from longtail.core.prior import Prior, PriorLike
from longtail.core.tensors import wide_dtype
from longtail.losses import kernel
from longtail.losses.kernel import Share
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss
from longtail.ranges import NonNegative, Positive


class MarginLoss(SampleLoss):
    """A loss given by its margins, b (`negative`), a and s, or by what it carries without them."""

    positive: Tensor | None  # a, or None for a = b
    scale: Tensor | None  # s, or None for ones
    factor = 1.0  # on all logits, before their scale and margins

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
        shift, scaled = self._along("shift", logits), self._scaled(logits)
        return kernel.label_losses(scaled, labels, shift, positive, share, self.factor)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        shift, positive = self._along("shift", logits), self._along("positive", logits)
        scaled = self._scaled(logits.to(wide_dtype(logits.dtype))) * self.factor
        return kernel.class_losses(scaled, shift, positive)

    def _scaled(self, logits: Tensor) -> Tensor:
        scale = self._along("scale", logits)
        return logits if scale is None else logits * scale


class TwoScale(MarginLoss):
    """The margin loss between the equalised and the logit-adjusted."""

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
    """Cross-entropy with margin π_y^(−1/4) between a positive and all negatives."""

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        super().__init__(train, positive=-(prior.probs**-0.25), **options)


class LogitAdjustedAdaptive(MarginLoss):
    """The logit-adjusted loss with the adaptive margin on top."""

    def __init__(self, train: PriorLike, **options: Unpack[LossOptions]) -> None:
        prior = label_prior(train, options)
        positive = prior.log - prior.probs**-0.25
        super().__init__(train, negative=prior.log, positive=positive, **options)


class VS(MarginLoss):
    """Vector scaling: a factor and a shift for each class. Predict with the raw logits.

    A factor below one makes the model raise a rare class's logit further to reach the same softmax.
    """

    def __init__(
        self, train: PriorLike, gamma: float = 0.3, tau: float = 1.0, **options: Unpack[LossOptions]
    ) -> None:
        prior = label_prior(train, options)
        check_number(tau, "tau")
        if check_number(gamma, "gamma") == 0:
            super().__init__(train, carried=prior.tempered(1 - tau), **options)
        else:
            scale = np.exp(gamma * (prior.log - prior.log.max()))
            negative = tau * prior.log if tau else None
            super().__init__(train, negative=negative, scale=scale, **options)


class CDT(VS):
    """Class-dependent temperatures: VS without a shift."""

    def __init__(
        self, train: PriorLike, gamma: float = 0.3, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(train, gamma, 0.0, **options)


class LDAM(MarginLoss):
    """Cross-entropy of scaled cosines with a larger margin for rarer classes.

    With class-balanced weights from some late epoch on it is LDAM-DRW:
    `deferred_reweighting(LDAM, counts, start)`. m is `max_margin`, the margin of the smallest
    class, in cosine; 0.3 for thousands of classes. The cosines are multiplied by s once: in the
    "loss", and probabilities are the softmax of scale · logits, or in the "head", which returns
    scale · cosine, and the loss scales its margins alone.

    >>> cosines = torch.tensor([[0.5, 0.4, -0.2]])
    >>> LDAM([70, 25, 5])(cosines, torch.tensor([1]))
    tensor(13.031)
    >>> LDAM([70, 25, 5], scale_in="head")(30 * cosines, torch.tensor([1]))
    tensor(13.031)
    """

    def __init__(
        self,
        train: PriorLike,
        max_margin: NonNegative = 0.5,
        scale: Positive = 30.0,
        scale_in: Literal["loss", "head"] = "loss",
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        check_number(max_margin, "max_margin", least=0)
        if not 0 < scale < torch.inf:
            raise ValueError(f"scale must be a finite number above zero, got {scale}")
        if scale_in not in ("loss", "head"):
            raise ValueError(f'scale_in must be "loss" or "head", got {scale_in!r}')
        # Ratios of counts are ratios of probabilities.
        margins = max_margin * np.exp(0.25 * (prior.log.min() - prior.log))
        super().__init__(train, positive=-scale * margins, **options)
        self.factor = scale if scale_in == "loss" else 1.0
