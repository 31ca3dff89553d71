r"""LADER and LADE: logits regularised to the log ratio p_u(x|y)/p_u(x) (LADE eq. 15 to 20).

    LADER = Σ_{c in the batch} p_s(c) · [−mean_{i: y_i=c} f_i[c] + L_c + λ·L_c²]            (15, 16)
    L_c   = log (1/N) Σ_i (p_u(y_i)/p_s(y_i)) · exp f_i[c]                                      (13)
    LADE  = −log softmax(f + log p_s)[y] + α · LADER                                        (18, 20)

The importance weight in L_c belongs to the sample's label. The code that is widely copied weighs
by the logit's class c instead and lets classes absent from the batch count; `variant="released"`
is that code with its guards of 1e-9 and 1e-8. Its own optimum carries the source prior, against
its cross-entropy term. With λ = 0 the logits are free to drift, and accuracy collapses.

Both terms are taken in one pass, as the softmax of the one serves the other. With
p_i = softmax(f_i + log p_s) and v_i = exp(f_i[y_i]) / p_i[y_i] the sum of (13) is

    Σ_i exp(f_i[c]) / p_s(y_i) = Σ_i v_i · p_i[c] / p_s(c) = S_c / p_s(c),

a product of a vector and the matrix p, and the gradient of share · Σ_i −log p_i[y_i] + strength ·
LADER at f_i[c], c in the batch, is

    p_i[c] · [share + strength · v_i · p_s(c)(1 + 2λL_c) / S_c]
        − 1[y_i = c] · [share + strength · p_s(c) / N_c].

Where p underflows so far that S_c could miss a digit, the terms are taken one after the other.

Carries: uniform; None for the released variant, and with class weights, which the regulariser does
not know of. Hong et al., CVPR 2021.
"""

import math
from functools import partial
from typing import Literal, NamedTuple, Unpack, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.core.retarget import check_logits
from longtail.core.tensors import wide_dtype
from longtail.losses.change_of_prior import BalancedSoftmax
from longtail.losses.inputs import all_count
from longtail.losses.kernel import fused_value, is_eager_cpu
from longtail.losses.loss import LossOptions
from longtail.losses.margins import MarginLoss
from longtail.losses.regularizer import RegularizedLoss, Regularizer, TermOptions
from longtail.losses.sample_loss import SampleLoss
from longtail.ranges import NonNegative

Variant = Literal["paper", "released"]


class Terms(NamedTuple):
    """What stays the same from batch to batch."""

    log_prior: Tensor
    prior: Tensor
    lam: float
    share: float
    strength: float


class LADER(Regularizer):
    """The regulariser alone, on logits: `LADER(train)(logits, labels)`.

    >>> f = torch.tensor([[2.0, 0.5, -1.0], [1.0, 1.5, 0.0], [0.2, -0.3, 0.8], [1.5, 0.1, 0.4]])
    >>> LADER([70, 25, 5], lam=0.1)(f, torch.tensor([0, 1, 2, 0]))
    tensor(-0.0650)
    """

    log_prior: Tensor

    def __init__(
        self,
        train: PriorLike,
        lam: NonNegative = 0.01,
        variant: Variant = "paper",
        **options: Unpack[TermOptions],
    ) -> None:
        super().__init__(**options)
        if variant not in ("paper", "released"):
            raise ValueError(f'variant must be "paper" or "released", got {variant!r}')
        self.lam, self.variant = check_number(lam, "lam", least=0), variant
        prior = full_prior(train, "train")
        self._hold("log_prior", prior.log)
        self._hold("prior", prior.probs)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The regulariser of the batch, shape ()."""
        check_logits(rows, len(self.log_prior))
        if not len(rows):
            return rows.sum()
        if self.variant == "released":
            return self._of_released(rows, labels, self._cast("log_prior", rows))
        return joined(rows, labels, self.terms(rows, share=0.0, strength=1.0))

    def terms(self, rows: Tensor, share: float, strength: float) -> Terms:
        """The constants of a pass over logits like these."""
        log_prior, prior = self._cast("log_prior", rows), self._cast("prior", rows)
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
    iNaturalist. α = 0 is balanced softmax.

    >>> LADE([70, 25, 5]).carried
    Prior([0.333, 0.333, 0.333])
    """

    def __init__(
        self,
        train: PriorLike,
        alpha: NonNegative = 0.1,
        lam: NonNegative = 0.01,
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
        softmax: SampleLoss = BalancedSoftmax(prior, **options)
        if variant == "released":
            softmax = MarginLoss(prior, negative=np.log(prior.probs + 1e-9), **options)
        super().__init__(softmax, LADER(prior, lam, variant, gather=gather), alpha, on="logits")

    @property
    def carried(self) -> Prior | None:
        """Uniform; None with class weights, where the two terms pull towards different priors."""
        return self.logit_loss.carried if self.class_weight is None else None

    def of_batch(self, logits: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        """The mean over samples that all count in one pass; else one term after the other."""
        lader = cast(LADER, self.regularizer)
        is_usual = (
            lader.variant == "paper"
            and self.class_weight is None
            and self.reduction == "mean"
            and logits.shape[1:] == (self.num_classes,)
            and is_eager_cpu(logits)
            and all_count(labels, self.ignore_index)
            and labels.numel() > 0
            and labels.max().item() < self.num_classes
        )
        if not is_usual:
            return super().of_batch(logits, labels, rows)
        wide = logits.to(wide_dtype(logits.dtype))
        terms = lader.terms(wide, share=1 / len(labels), strength=self.strength)
        return joined(wide, labels.long(), terms)


def joined(rows: Tensor, labels: Tensor, terms: Terms) -> Tensor:
    """The sum of both terms; `rows` are logits of shape (N, C), N > 0, labels all in range."""
    fused = partial(_fused, labels=labels, terms=terms)
    return fused_value(rows, fused, partial(_plain, labels=labels, terms=terms))


def _plain(rows: Tensor, labels: Tensor, terms: Terms) -> Tensor:
    """Equations 13, 15 and 16 on all columns, those of absent classes masked, and the softmax."""
    # Products and sums, not @: autocast would do that in half precision.
    counts = torch.bincount(labels, minlength=len(terms.prior)).to(rows)
    own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
    first = ((terms.prior / counts)[labels] * own).sum()
    weighed = rows - terms.log_prior[labels].unsqueeze(1)
    level = torch.logsumexp(weighed, dim=0) - math.log(rows.numel())
    weight = terms.prior * (counts > 0)
    lader = (weight * (level + terms.lam * level.square())).sum() - first
    if not terms.share:
        return lader * terms.strength
    losses = F.cross_entropy(rows + terms.log_prior, labels, reduction="sum")
    return losses * terms.share + lader * terms.strength


def _fused(rows: Tensor, labels: Tensor, terms: Terms) -> tuple[float, Tensor] | None:
    """The value and its gradient, or None where too much underflows."""
    index = labels.unsqueeze(1)
    p = rows + terms.log_prior
    torch.softmax(p, 1, out=p)
    # What is about a few hundred numbers goes through NumPy, which has less to start.
    chosen = p.gather(1, index).squeeze(1).numpy()
    own, at = rows.gather(1, index).squeeze(1).numpy(), labels.numpy()
    precision = np.finfo(chosen.dtype)
    if not chosen.min() >= precision.tiny:
        return None
    losses = -np.log(chosen)
    log_v = own + losses
    top = log_v.max()
    v = torch.from_numpy(np.exp(log_v - top))
    counts = np.bincount(at, minlength=p.shape[1])
    present = counts.nonzero()[0]
    sums = torch.mv(p.t(), v).numpy()[present]
    if not sums.min() >= len(at) * precision.tiny / precision.eps:
        return None
    prior = terms.prior.numpy()
    level = np.log(sums) - terms.log_prior.numpy()[present] + (top - math.log(p.numel()))
    first = (prior[at] / counts[at]).astype(own.dtype)
    lader = (prior[present] * (level + terms.lam * level * level)).sum() - (first * own).sum()
    slope = np.zeros_like(prior)
    slope[present] = terms.strength * prior[present] * (1 + 2 * terms.lam * level) / sums
    p *= torch.outer(v, torch.from_numpy(slope)).add_(terms.share)
    p.scatter_add_(1, index, torch.from_numpy(-(terms.share + terms.strength * first)).unsqueeze(1))
    value = terms.share * losses.sum() + terms.strength * lader
    return float(value), p
