r"""LDAM: label-distribution-aware margins on cosines.

    ℓ(y, f) = cross-entropy of s·cos with s·(cos_y − m_y) at the label,    m_y ∝ n_y^(−1/4)

where the margin of the smallest class is `max_margin`. Trained with class-balanced weights from
some late epoch on, it is LDAM-DRW: `deferred_reweighting(LDAM, counts, start)`.

Carries: None, since a margin on the positive alone is no change of prior.
Cao et al., NeurIPS 2019.
"""

from typing import Literal, Unpack

import torch
from torch import Tensor

from longtail.core.prior import Prior, PriorLike
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.losses import kernel
from longtail.losses.kernel import Share
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.margin import MarginLoss


class LDAM(MarginLoss):
    """Cross-entropy of scaled cosines with a larger margin for rarer classes.

    Say where the cosines are multiplied by `scale`, for it must happen once:

    - scale_in="loss": the head returns cosines, in [−1, 1]; the loss multiplies them. Predicted
      probabilities are then the softmax of scale · logits, not of the logits.
    - scale_in="head": the head returns scale · cosine already; the loss only scales its margins.

    Both are one loss. With "loss" on a head that multiplies too, the cosines are scaled twice;
    with "head" on plain cosines never, and the margins are far too large.

    Args:
        train: The prior the batches follow.
        max_margin: The margin of the smallest class, in cosine; 0.3 where there are thousands of
            classes.
        scale: s.
        scale_in: "loss" or "head".

    >>> import torch
    >>> loss = LDAM([70, 25, 5])
    >>> cosines = torch.tensor([[0.5, 0.4, -0.2]])
    >>> loss(cosines, torch.tensor([1]))
    tensor(13.031)
    >>> loss = LDAM([70, 25, 5], scale_in="head")
    >>> loss(30 * cosines, torch.tensor([1]))
    tensor(13.031)
    """

    positive: Tensor

    def __init__(
        self,
        train: PriorLike,
        max_margin: float = 0.5,
        scale: float = 30.0,
        scale_in: Literal["loss", "head"] = "loss",
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        if not 0 <= max_margin < torch.inf:
            raise ValueError(f"max_margin must be a finite number, zero or more, got {max_margin}")
        if not 0 < scale < torch.inf:
            raise ValueError(f"scale must be a finite number above zero, got {scale}")
        if scale_in not in ("loss", "head"):
            raise ValueError(f'scale_in must be "loss" or "head", got {scale_in!r}')
        positive = -scale * _margins(prior, max_margin)
        super().__init__(train, positive=positive, **options)
        self.factor = scale if scale_in == "loss" else 1.0

    def summed_losses(self, logits: Tensor, labels: Tensor, share: Share) -> Tensor:
        """Their sum weighted by `share`; the losses themselves if that is None."""
        margins = self.cast("positive", logits)[labels]
        return kernel.label_losses(logits, labels, None, margins, share, self.factor)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        return super().class_losses(self.factor * logits.to(wide_dtype(logits.dtype)))


def _margins(prior: Prior, max_margin: float) -> Tensor:
    """n_y^(−1/4), scaled to the largest margin: ratios of counts are ratios of probabilities."""
    return max_margin * (0.25 * (as_tensor(prior.log).min() - as_tensor(prior.log))).exp()
