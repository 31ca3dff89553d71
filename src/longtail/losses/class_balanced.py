r"""Class-balanced weights: a class counts by its effective number of samples.

    ℓ(y, f) = α_y · ℓ₀(y, f),    α_y ∝ (1 − β) / (1 − β^{n_y}),    Σ_y α_y = C

with ℓ₀ the cross-entropy, or the softmax focal loss. β = 0 weighs all classes alike; classes with
far fewer than 1/(1 − β) samples weigh 1/n_y, those with far more weigh alike.

Carries: α · train on cross-entropy; None on focal. Cui et al., CVPR 2019.
"""

from typing import Unpack

from torch import Tensor

from longtail.core.class_weights import class_balanced_weights as class_balanced_weights
from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.focal import check_gamma, focal_class_losses, focal_losses
from longtail.losses.kernel import Share
from longtail.losses.loss import Loss, LossOptions, label_prior


class ClassBalanced(Loss):
    """Cross-entropy or focal loss with class-balanced weights.

    The weights depend on the counts themselves, not on their ratios. As all weights of a paper
    they divide by the number of samples in a mean; torch's own weighted mean, which divides by
    their sum, is `CrossEntropy(train, weight=as_tensor(class_balanced_weights(train)))`.

    Args:
        train: The class counts, or a Prior made from them.
        beta: In [0, 1): how much samples of one class repeat each other.
        gamma: That of the softmax focal loss; None for cross-entropy.

    >>> import torch
    >>> loss = ClassBalanced([70, 25, 5])
    >>> loss(torch.tensor([[2.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.822)
    >>> loss.carried
    Prior([0.334, 0.333, 0.333])
    """

    def __init__(
        self,
        train: PriorLike,
        beta: float = 0.9999,
        gamma: float | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = label_prior(train, options)
        alpha = as_tensor(class_balanced_weights(train, beta, options.get("label_smoothing", 0.0)))
        self_weighted = gamma is not None and check_gamma(gamma) > 0
        carried = None if self_weighted else prior.reweighted(alpha)
        super().__init__(train, carried, alpha, **options)
        self.gamma = gamma or 0.0

    def label_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """ℓ₀(y_i, f_i) for class indices in range."""
        return self.summed_losses(logits, labels, None)

    def summed_losses(self, logits: Tensor, labels: Tensor, share: Share) -> Tensor:
        """Their sum weighted by `share`; the losses themselves if that is None."""
        return focal_losses(logits, labels, self.gamma, share)

    def class_losses(self, logits: Tensor) -> Tensor:
        """ℓ₀(y, f_i) for every label y."""
        return focal_class_losses(logits, self.gamma)
