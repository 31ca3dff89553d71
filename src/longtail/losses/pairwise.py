r"""The pairwise margin loss for any matrix of margins (LA eq. 11).

    ℓ(y, f) = α_y · log[1 + Σ_{y'≠y} exp(Δ_{yy'} + f_{y'} − f_y)]

For margins that do not split as b_{y'} − a_y. It stores C × C numbers, and soft labels need
N × C × C: for small C.

Carries: None, since a general matrix is no change of prior.
"""

from typing import Any, Unpack

import numpy.typing as npt
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import as_tensor, per_class_tensor, wide_dtype
from longtail.losses import kernel
from longtail.losses.loss import Loss, LossOptions


class PairwiseMargin(Loss):
    """Cross-entropy with a margin for every pair of positive and negative class.

    Args:
        train: The prior the batches follow.
        delta_matrix: Δ, shape (C, C): row is the positive, column the negative class. The
            diagonal is not used.
        weights: α, one positive number a class, or None for ones.

    >>> import torch
    >>> loss = PairwiseMargin([70, 25, 5], delta_matrix=[[0, 1, 2], [0, 0, 1], [0, 0, 0]])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(1.806)
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
            raise ValueError(
                f"delta_matrix must have shape ({prior.num_classes}, {prior.num_classes}), "
                f"got {tuple(delta.shape)}"
            )
        if not delta.isfinite().all():
            raise ValueError("delta_matrix must be finite, got NaN or infinity")
        alpha = None
        if weights is not None:
            alpha = per_class_tensor(weights, prior.num_classes, "weights")
        super().__init__(prior, None, alpha, **options)  # no change of prior
        self.hold("delta", delta.fill_diagonal_(0.0))

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range."""
        margins = self.delta.to(logits.device, wide_dtype(logits.dtype))[labels]
        return kernel.label_losses(logits, labels, margins.movedim(-1, 1), None)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        f = logits.to(wide_dtype(logits.dtype)).movedim(1, -1)
        sums = torch.logsumexp(f.unsqueeze(-2) + self.delta.to(f), dim=-1)
        return (sums - f).movedim(-1, 1)
