r"""Losses of LA eq. 11 whose margins split as Δ_{yy'} = b_{y'} − a_y, and what they carry.

    ℓ(y, f) = α_y · log[1 + Σ_{y'≠y} exp(Δ_{yy'} + f_{y'} − f_y)]

If a = b, the logits shifted by b are trained by cross-entropy on batches in which class y weighs
α_y · train(y): the shifted logits carry α · train, so the logits carry α · train · exp(−b), with
train smoothed where labels are. A margin on the positive alone, or a factor on the logits, is no
change of prior: None.
"""

from typing import Unpack

from torch import Tensor

from longtail.core.prior import Prior, PriorLike
from longtail.core.tensors import along_classes, as_tensor
from longtail.losses import kernel
from longtail.losses.kernel import Share
from longtail.losses.loss import Loss, LossOptions, label_prior


class MarginLoss(Loss):
    """A loss given by its class weights, margins and scale; it derives what it carries.

    Args:
        train: The prior the batches follow.
        alpha: Class weights α, or None for ones.
        negative: b, or None for zero.
        positive: a, or None for a = b.
        scale: A factor on each class's logit, or None for ones.
    """

    negative: Tensor | None
    positive: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        train: PriorLike,
        *,
        alpha: Tensor | None = None,
        negative: Tensor | None = None,
        positive: Tensor | None = None,
        scale: Tensor | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        carried = None
        if positive is None and scale is None:
            log = as_tensor(label_prior(train, options).log)
            log = log if alpha is None else log + alpha.log()
            carried = Prior.from_log(log if negative is None else log - negative)
        super().__init__(train, carried, alpha, **options)
        self.hold("negative", negative)
        self.hold("positive", positive)
        self.hold("scale", scale)

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range."""
        return self.summed_losses(logits, labels, None)

    def summed_losses(self, logits: Tensor, labels: Tensor, share: Share) -> Tensor:
        """Their sum weighted by `share`, in one kernel; the losses themselves if that is None."""
        positive = None if self.positive is None else self.cast("positive", logits)[labels]
        scaled, negative = self._shift(logits)
        return kernel.label_losses(scaled, labels, negative, positive, share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        positive = None
        if self.positive is not None:
            positive = along_classes(self.cast("positive", logits), logits)
        scaled, negative = self._shift(logits)
        return kernel.class_losses(scaled, negative, positive)

    def _shift(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.scale is not None:
            logits = logits * along_classes(self.cast("scale", logits), logits)
        if self.negative is None:
            return logits, None
        return logits, along_classes(self.cast("negative", logits), logits)
