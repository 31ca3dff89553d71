r"""LADER and LADE: logits regularised to the log ratio p_u(x|y)/p_u(x) (LADE eq. 15 to 20).

    LADER = Σ_{c in the batch} p_s(c) · [−mean_{i: y_i=c} f_i[c] + L_c + λ·L_c²]            (15, 16)
    L_c   = log (1/N) Σ_i (p_u(y_i)/p_s(y_i)) · exp f_i[c]                                      (13)
    LADE  = −log softmax(f + log p_s)[y] + α · LADER                                        (18, 20)

The importance weight in L_c belongs to the sample's label. The code that is widely copied weighs
by the logit's class c instead and lets classes absent from the batch count; `variant="released"`
is that code with its guards of 1e-9 and 1e-8. Its own optimum carries the source prior, against
its cross-entropy term.

λ must be above zero: without it the logits are free to drift, and accuracy collapses.

Carries: uniform; None for the released variant. Hong et al., CVPR 2021.
"""

from typing import Literal, Unpack

import torch
from torch import Tensor

from longtail.core.prior import PriorLike, full_prior
from longtail.losses.loss import LossOptions, can_look
from longtail.losses.regularizer import RegularizedLoss, Regularizer

Variant = Literal["paper", "released"]


class LADER(Regularizer):
    """The regulariser alone, on logits: `LADER(train)(logits, labels)`.

    Args:
        train: The prior the batches follow, p_s.
        lam: λ, what the squared term counts.
        variant: "paper", or "released" for the widely copied code.
        ignore_index: Samples with this label are left out.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> f = torch.tensor([[2.0, 0.5, -1.0], [1.0, 1.5, 0.0], [0.2, -0.3, 0.8], [1.5, 0.1, 0.4]])
    >>> LADER([70, 25, 5], lam=0.1)(f, torch.tensor([0, 1, 2, 0]))
    tensor(-0.0650)
    >>> LADER([70, 25, 5], lam=0.1, variant="released")(f, torch.tensor([0, 1, 2, 0]))
    tensor(-0.7712)
    """

    log_prior: Tensor

    def __init__(
        self,
        train: PriorLike,
        lam: float = 0.01,
        variant: Variant = "paper",
        *,
        ignore_index: int = -100,
        gather: bool = True,
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
        if not lam >= 0:
            raise ValueError(f"lam must not be negative, got {lam}")
        if variant not in ("paper", "released"):
            raise ValueError(f'variant must be "paper" or "released", got {variant!r}')
        self.lam = lam
        self.variant = variant
        self.register_buffer("log_prior", full_prior(train, "train").log)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The regulariser of the batch, shape ()."""
        if rows.shape[1] != len(self.log_prior):
            raise ValueError(
                f"logits must have {len(self.log_prior)} classes on axis 1, "
                f"got shape {tuple(rows.shape)}"
            )
        if not len(rows):
            return rows.sum()
        log_prior = self.log_prior.to(rows)
        terms = self._of_paper if self.variant == "paper" else self._of_released
        counts = torch.bincount(labels, minlength=rows.shape[1]).to(rows)
        return terms(rows, labels, log_prior, counts)

    def _of_paper(self, rows: Tensor, labels: Tensor, log_prior: Tensor, counts: Tensor) -> Tensor:
        prior = log_prior.exp()
        own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        first = (prior / counts)[labels] @ own
        log_weight = -log_prior[labels] - _log(len(log_prior), rows)
        weighed = prior * (counts > 0)
        if can_look(rows):  # few of many classes are in a batch: take their columns only
            present = counts.nonzero().squeeze(1)
            rows, weighed = rows.index_select(1, present), weighed[present]
        sums = torch.logsumexp(rows + log_weight.unsqueeze(1), dim=0) - _log(len(rows), rows)
        return weighed @ (sums + self.lam * sums.square()) - first

    def _of_released(
        self, rows: Tensor, labels: Tensor, log_prior: Tensor, counts: Tensor
    ) -> Tensor:
        prior = log_prior.exp()
        own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        first = (prior / (counts + 1e-8))[labels] @ own
        shift = (prior + 1e-9).log() + _log(len(prior), rows)
        sums = torch.logsumexp(rows - shift, dim=0) - _log(len(rows), rows)
        return prior @ (sums + self.lam * sums.square()) - first


class LADE(RegularizedLoss):
    """Balanced softmax with LADER: `LADE(train)(logits, labels)`.

    Published strengths, λ and α: 0.01 and 0.1 for CIFAR-100-LT at ratio 100 (the default), 0.01
    and 0.01 at 10 and 50; 0.1 and 0.005 for Places-LT; 0.5 and 0.05 for ImageNet-LT and
    iNaturalist.

    Args:
        train: The prior the batches follow, p_s.
        alpha: α, what LADER counts. 0 is balanced softmax.
        lam: λ of LADER.
        variant: "paper", or "released" for the widely copied code.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> loss = LADE([70, 25, 5], alpha=0.1, lam=0.1)
    >>> f = torch.tensor([[2.0, 0.5, -1.0], [1.0, 1.5, 0.0], [0.2, -0.3, 0.8], [1.5, 0.1, 0.4]])
    >>> loss(f, torch.tensor([0, 1, 2, 0]))
    tensor(0.8764)
    >>> loss.carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(
        self,
        train: PriorLike,
        alpha: float = 0.1,
        lam: float = 0.01,
        variant: Variant = "paper",
        *,
        gather: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        prior = full_prior(train, "train")
        released = variant == "released"
        super().__init__(
            prior,
            LADER(prior, lam, variant, gather=gather),
            alpha,
            on="logits",
            negative=(prior.probs + 1e-9).log() if released else prior.log,
            **options,
        )
        if released:
            self.carried_log = None  # its two terms pull towards different priors


def _log(number: int, like: Tensor) -> Tensor:
    return torch.tensor(number, dtype=like.dtype, device=like.device).log()
