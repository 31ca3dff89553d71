r"""The equalised margin: rare negatives press less on the others.

    Δ_{yy'} = log F(π_{y'}),    F(z) = z^τ                                       (LA eq. 6, §5.1)

or the thresholded form of the equalisation loss: a negative rarer than a threshold is dropped
from the sum with some probability, at random for each sample and class.

Carries: None. A margin on the negatives alone is no change of prior, and the loss is not
consistent for the balanced error.
"""

from typing import Unpack

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike
from longtail.core.tensors import along_classes, as_tensor, wide_dtype
from longtail.losses import kernel
from longtail.losses.loss import Loss, LossOptions, label_prior


class Equalized(Loss):
    """Cross-entropy in which rare classes count less as negatives.

    Args:
        train: The prior the batches follow.
        tau: The power of the smooth form; 1 if not given.
        threshold: A class probability. If given, the thresholded form is used instead of the
            smooth one: negatives below it are dropped while the module is in training mode, and
            none in evaluation mode, as with dropout.
        drop_rate: How often such a negative is dropped; 0.9 if not given.
        generator: Where the random numbers come from; None is torch's default.

    >>> import torch
    >>> loss = Equalized([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.423)
    """

    negative: Tensor | None
    rare: Tensor | None

    def __init__(
        self,
        train: PriorLike,
        tau: float | None = None,
        threshold: float | None = None,
        drop_rate: float | None = None,
        generator: torch.Generator | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        super().__init__(train, None, **options)  # no change of prior
        if (drop_rate if threshold is None else tau) is not None:
            raise ValueError(
                "tau belongs to the smooth form and drop_rate to the one with a threshold; "
                f"got tau={tau}, threshold={threshold}, drop_rate={drop_rate}"
            )
        self.drop_rate = 0.9 if drop_rate is None else check_number(drop_rate, "drop_rate")
        if not 0 <= self.drop_rate <= 1:
            raise ValueError(f"drop_rate must be a probability, got {drop_rate}")
        self.generator = generator
        power = 1.0 if tau is None else check_number(tau, "tau")
        if threshold is not None:
            check_number(threshold, "threshold", least=0)
        self.hold("negative", power * as_tensor(prior.log) if threshold is None else None)
        self.hold("rare", None if threshold is None else as_tensor(prior.probs) < threshold)

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range."""
        unshifted = torch.zeros((), dtype=wide_dtype(logits.dtype), device=logits.device)
        return kernel.label_losses(
            logits, labels, self._margins(logits), unshifted.expand_as(labels)
        )

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        unshifted = torch.zeros((), dtype=wide_dtype(logits.dtype), device=logits.device)
        return kernel.class_losses(logits, self._margins(logits), unshifted)

    def _margins(self, logits: Tensor) -> Tensor | None:
        wide = wide_dtype(logits.dtype)
        if self.negative is not None:
            return along_classes(self.negative.to(logits.device, wide), logits)
        if self.rare is None or not self.training:
            return None
        draw = torch.rand(logits.shape, generator=self.generator, device=logits.device)
        dropped = along_classes(self.rare, logits) & (draw < self.drop_rate)
        # Not -inf: a sample all of whose classes are dropped would then have no gradient.
        return torch.zeros_like(logits, dtype=wide).masked_fill(dropped, torch.finfo(wide).min / 4)
