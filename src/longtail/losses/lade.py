r"""LADER and LADE: logits regularised to the log ratio p_u(x|y)/p_u(x) (LADE eq. 15 to 20).

    LADER = Σ_{c in the batch} p_s(c) · [−mean_{i: y_i=c} f_i[c] + L_c + λ·L_c²]            (15, 16)
    L_c   = log (1/N) Σ_i (p_u(y_i)/p_s(y_i)) · exp f_i[c]                                      (13)
    LADE  = −log softmax(f + log p_s)[y] + α · LADER                                        (18, 20)

The importance weight in L_c belongs to the sample's label. The code that is widely copied weighs
by the logit's class c instead and lets classes absent from the batch count; `variant="released"`
is that code with its guards of 1e-9 and 1e-8. Its own optimum carries the source prior, against
its cross-entropy term.

λ must be above zero: without it the logits are free to drift, and accuracy collapses.

Carries: uniform; None for the released variant, and with class weights, which the regulariser does
not know of. Hong et al., CVPR 2021.
"""

import math
from typing import Literal, Unpack, cast

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.losses.kernel import can_look
from longtail.losses.lade_pass import Terms, joined
from longtail.losses.loss import LossOptions, all_count
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
        if variant not in ("paper", "released"):
            raise ValueError(f'variant must be "paper" or "released", got {variant!r}')
        self.lam = check_number(lam, "lam", least=0)
        self.variant = variant
        prior = full_prior(train, "train")
        self.hold("log_prior", as_tensor(prior.log))
        self.hold("prior", as_tensor(prior.probs))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The regulariser of the batch, shape ()."""
        if rows.shape[1] != len(self.log_prior):
            raise ValueError(
                f"logits must have {len(self.log_prior)} classes on axis 1, "
                f"got shape {tuple(rows.shape)}"
            )
        if not len(rows):
            return rows.sum()
        if self.variant == "released":
            return self._of_released(rows, labels, self.cast("log_prior", rows))
        return joined(rows, labels, self.terms(rows, share=0.0, strength=1.0))

    def terms(self, rows: Tensor, share: float, strength: float) -> Terms:
        """What the pass over logits like these needs to know."""
        log_prior, prior = self.cast("log_prior", rows), self.cast("prior", rows)
        return Terms(log_prior, prior, self.lam, share, strength)

    def _of_released(self, rows: Tensor, labels: Tensor, log_prior: Tensor) -> Tensor:
        prior = log_prior.exp()
        counts = torch.bincount(labels, minlength=len(prior)).to(rows)
        own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        first = ((prior / (counts + 1e-8))[labels] * own).sum()
        shift = (prior + 1e-9).log() + math.log(len(prior) * len(rows))
        sums = torch.logsumexp(rows - shift, dim=0)
        return (prior * (sums + self.lam * sums.square())).sum() - first


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
        if options.get("label_smoothing"):
            raise ValueError(
                "LADE takes no label_smoothing: LADER asks which samples are of one class, so its "
                "optimum is that of the labels as they are, and the softmax term would pull "
                "towards another; use LogitAdjusted with label_smoothing"
            )
        released = variant == "released"
        super().__init__(
            prior,
            LADER(prior, lam, variant, gather=gather),
            alpha,
            on="logits",
            negative=(as_tensor(prior.probs) + 1e-9).log() if released else as_tensor(prior.log),
            **options,
        )
        if released or self.weight is not None:
            self.carried_log = None  # the two terms pull towards different priors

    def of_batch(self, logits: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """The mean over samples that all count in one pass; else one term after the other."""
        lader = cast(LADER, self.regularizer)
        simple = lader.variant == "paper" and self.weight is None
        if not simple or self.reduction != "mean" or not self._all_usual(logits, labels):
            return super().of_batch(logits, labels, rows)
        wide = logits.to(wide_dtype(logits.dtype))
        terms = lader.terms(wide, share=1 / len(labels), strength=self.strength)
        return joined(wide, labels.long(), terms)

    def _all_usual(self, logits: Tensor, labels: Tensor) -> bool:
        """Whether the rows are plain, no sample is ignored and every label in range."""
        return (
            logits.shape[1:] == (self.num_classes,)
            and can_look(logits)
            and all_count(labels, self.ignore_index)
            and labels.numel() > 0
            and labels.max().item() < self.num_classes
        )
