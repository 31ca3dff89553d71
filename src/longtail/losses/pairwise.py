r"""Margins that depend on the negative: the equalised loss, and any matrix of them (LA eq. 11).

    ℓ(y, f) = α_y · log[1 + Σ_{y'≠y} exp(Δ_{yy'} + f_{y'} − f_y)]

Equalised: Δ_{yy'} = τ·log π_{y'} (LA eq. 6, §5.1), so that rare negatives press less on the others;
or the thresholded form of the equalisation loss: a negative rarer than a threshold is dropped from
the sum with some probability, at random for each sample and class. Pairwise: any Δ that does not
split as b_{y'} − a_y; it stores C × C numbers, and soft labels need N × C × C: for small C.

Carries: None. Margins on the negatives alone, or a general matrix, are no change of prior; the
equalised loss is not consistent for the balanced error.
"""

from typing import Any, Unpack

import numpy.typing as npt
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import along_classes, as_tensor, wide_dtype
from longtail.losses import kernel
from longtail.losses.kernel import Share
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss
from longtail.ranges import Fraction, NonNegative


class Equalized(SampleLoss):
    """Cross-entropy in which rare classes count less as negatives.

    The smooth form has the power `tau`, 1 if there is none. With a `threshold`, a class
    probability, rarer negatives are dropped at `drop_rate`, 0.9 if there is none: in training mode
    alone, as with dropout.
    """

    negative: Tensor | None
    rare: Tensor | None

    def __init__(
        self,
        train: PriorLike,
        tau: NonNegative | None = None,
        threshold: Fraction | None = None,
        drop_rate: Fraction | None = None,
        generator: torch.Generator | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        super().__init__(train, None, **options)
        if (drop_rate if threshold is None else tau) is not None:
            raise ValueError(
                "tau belongs to the smooth form and drop_rate to the one with a threshold; "
                f"got tau={tau}, threshold={threshold}, drop_rate={drop_rate}"
            )
        rate = 0.9 if drop_rate is None else drop_rate
        self.drop_rate = check_number(rate, "drop_rate", least=0, most=1)
        self.generator = generator
        negative = rare = None
        if threshold is None:
            negative = prior.log * (1.0 if tau is None else check_number(tau, "tau"))
        else:
            rare = prior.probs < check_number(threshold, "threshold", least=0)
        self._hold("negative", negative)
        self._hold("rare", rare)

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        margins, none = self._margins(logits)
        return kernel.label_losses(logits, labels, margins, none.expand_as(labels), share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        return kernel.class_losses(logits, *self._margins(logits))

    def _margins(self, logits: Tensor) -> tuple[Tensor | None, Tensor]:
        """Those of the negatives, and that of a positive: zero."""
        wide = wide_dtype(logits.dtype)
        none = torch.zeros((), dtype=wide, device=logits.device)
        if self.negative is not None:
            return along_classes(self._cast("negative", logits), logits), none
        if self.rare is None or not self.training:
            return None, none
        draw = torch.rand(logits.shape, generator=self.generator, device=logits.device)
        dropped = along_classes(self.rare, logits) & (draw < self.drop_rate)
        # Not -inf: a sample all of whose classes are dropped would then have no gradient.
        return none.expand_as(logits).masked_fill(dropped, torch.finfo(wide).min / 4), none


class PairwiseMargin(SampleLoss):
    """Cross-entropy with a margin for every pair of positive and negative class.

    `delta_matrix` is Δ, a row a positive, a column a negative class; its diagonal is not used.
    `weights` is α.
    """

    delta: Tensor

    def __init__(
        self,
        train: PriorLike,
        delta_matrix: Tensor | npt.ArrayLike,
        weights: ArrayLike | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = full_prior(train, "train")
        matrix: Any = delta_matrix
        delta = as_tensor(matrix).detach().to("cpu", torch.float64).clone()
        if delta.shape != (prior.num_classes,) * 2:
            wanted = f"({prior.num_classes}, {prior.num_classes})"
            raise ValueError(f"delta_matrix must have shape {wanted}, got {tuple(delta.shape)}")
        if not delta.isfinite().all():
            raise ValueError("delta_matrix must be finite, got NaN or infinity")
        if weights is not None:
            weights = check_per_class(weights, prior.num_classes, "weights")
        super().__init__(prior, None, weights, **options)
        self._hold("delta", delta.fill_diagonal_(0.0))

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        margins = self._cast("delta", logits)[labels]
        return kernel.label_losses(logits, labels, margins.movedim(-1, 1), None, share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        f = logits.to(wide_dtype(logits.dtype)).movedim(1, -1)
        sums = torch.logsumexp(f.unsqueeze(-2) + self.delta.to(f), dim=-1)
        return (sums - f).movedim(-1, 1)
