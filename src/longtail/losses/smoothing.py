r"""Label-aware smoothing: frequent classes are smoothed more, since a model is surest of them.

    ℓ(y, f) = −(1−ε_y)·log p_y − ε_y/(C−1) · Σ_{k≠y} log p_k,        p = softmax(f)

with ε_y falling from ε_head for the largest class to ε_tail for the smallest: linearly in the
count, or as a quarter of a sine, which stays high for longer.

Carries: None, since smoothed labels are no change of prior. Zhong et al., CVPR 2021 (MiSLAS).
"""

from typing import Literal, Unpack

import numpy as np
import torch
from torch import Tensor

from longtail.core.prior import PriorLike
from longtail.core.tensors import along_classes, wide_dtype
from longtail.losses.kernel import Share, weighted
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.sample_loss import SampleLoss


class LabelAwareSmoothing(SampleLoss):
    """Cross-entropy with label smoothing that follows the class counts.

    Args:
        train: The prior the batches follow.
        head: ε of the largest class.
        tail: ε of the smallest class.
        shape: "linear" or "sine": how ε falls in between.

    >>> loss = LabelAwareSmoothing([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([0]))
    tensor(1.141)
    """

    def __init__(
        self,
        train: PriorLike,
        head: float = 0.4,
        tail: float = 0.1,
        shape: Literal["linear", "sine"] = "linear",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(train, None, **options)
        if not (0 <= tail < 1 and 0 <= head < 1):
            raise ValueError(f"head and tail must lie in [0, 1), got {head} and {tail}")
        if shape not in ("linear", "sine"):
            raise ValueError(f'shape must be "linear" or "sine", got {shape!r}')
        # Where each class's count lies between the smallest, 0, and the largest, 1.
        probs = label_prior(train, options).probs
        span = probs.max() - probs.min()
        height = (probs - probs.min()) / span if span else np.ones_like(probs)
        height = np.sin(height * np.pi / 2) if shape == "sine" else height
        self._hold("epsilon", tail + (head - tail) * height)

    def label_losses(self, logits: Tensor, labels: Tensor, share: Share = None) -> Tensor:
        """ℓ(y_i, f_i) for class indices in range, or their sum weighted by `share`."""
        every = self.class_losses(logits)
        return weighted(every.gather(1, labels.unsqueeze(1)).squeeze(1), share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ(y, f_i) for every label y."""
        nll = -torch.log_softmax(logits.to(wide_dtype(logits.dtype)), dim=1)
        epsilon = along_classes(self._cast("epsilon", logits), logits)
        others = (nll.sum(dim=1, keepdim=True) - nll) / max(self.num_classes - 1, 1)
        return (1 - epsilon) * nll + epsilon * others
