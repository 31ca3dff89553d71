r"""ELM: margins on logits and on embeddings (ELM eq. 4).

    ℓ = log[1 + Σ_{y'≠y} (π_{y'}/π_y) · exp(f_{y'} − f_y)] + λ · Ω_pull(Φ, y)

Carries: uniform, claimed for the logit term; Ω shapes the features only.
"""

from typing import Unpack

from longtail.core.prior import PriorLike
from longtail.core.tensors import as_tensor
from longtail.losses.loss import LossOptions, label_prior
from longtail.losses.pull import Margins, Pull
from longtail.losses.regularizer import RegularizedLoss


class ELM(RegularizedLoss):
    """The logit-adjusted loss with the pull term: `ELM(train)(logits, labels, features=Φ)`.

    Published: α_y = P(y), λ = 0.01 for CIFAR-10; α_y = √n_y, λ = 0.01 for CIFAR-100 and
    iNaturalist; α_y = 10·√P(y), λ = 0.001 for ImageNet. The default margins are for features of
    norm one.

    Args:
        train: The prior the batches follow.
        lam: λ, what the pull term counts.
        margins: The rule for α_y, or one margin a class; see `pull_margins`.
        scale: A factor on the margins.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> loss = ELM([70, 25, 5], lam=0.1)
    >>> logits, features = torch.tensor([[2.0, 0.5, -1.0]] * 2), torch.eye(2)
    >>> loss(logits, torch.tensor([1, 1]), features=features)
    tensor(2.772)
    """

    def __init__(
        self,
        train: PriorLike,
        lam: float = 0.01,
        margins: Margins = "relative",
        scale: float = 1.0,
        *,
        gather: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        pull = Pull(train, margins, scale, gather=gather)
        shift = as_tensor(label_prior(train, options).log)
        super().__init__(train, pull, lam, on="features", negative=shift, **options)
