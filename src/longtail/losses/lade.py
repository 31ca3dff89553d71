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
from typing import Any, Literal, Unpack

import torch
from torch import Tensor

from longtail.core.numbers import check_number
from longtail.core.prior import PriorLike, full_prior
from longtail.losses.kernel import can_look
from longtail.losses.loss import LossOptions
from longtail.losses.regularizer import RegularizedLoss, Regularizer

Variant = Literal["paper", "released"]

# Numbers: torch works on so many with one thread, and waking another costs more than it saves.
_BLOCK = 32_000


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
        self.hold("log_prior", prior.log)
        self.hold("prior", prior.probs)

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The regulariser of the batch, shape ()."""
        return self.attached(rows, labels)[1]

    def attached(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The logits to go on with, and the regulariser, whose gradient is added to theirs."""
        if rows.shape[1] != len(self.log_prior):
            raise ValueError(
                f"logits must have {len(self.log_prior)} classes on axis 1, "
                f"got shape {tuple(rows.shape)}"
            )
        if not len(rows):
            return rows, rows.sum()
        log_prior = self.cast("log_prior", rows)
        if self.variant == "released":
            return rows, self._of_released(rows, labels, log_prior)
        if not can_look(rows):
            return rows, _lader(rows, labels, log_prior, self.lam)
        both: tuple[Tensor, Tensor] = _FusedLADER.apply(
            rows, labels, log_prior, self.cast("prior", rows), self.lam
        )  # type: ignore[no-untyped-call]
        return both

    def _of_released(self, rows: Tensor, labels: Tensor, log_prior: Tensor) -> Tensor:
        prior = log_prior.exp()
        counts = torch.bincount(labels, minlength=len(prior)).to(rows)
        own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
        first = ((prior / (counts + 1e-8))[labels] * own).sum()
        shift = (prior + 1e-9).log() + math.log(len(prior) * len(rows))
        sums = torch.logsumexp(rows - shift, dim=0)
        return (prior * (sums + self.lam * sums.square())).sum() - first


class _FusedLADER(torch.autograd.Function):
    """LADER and its gradient on the columns of the classes in the batch, few of many.

    For sample i and class c in the batch the gradient is

        p_s(c) · [(1 + 2λL_c) · softmax_i(f_i[c] + log w_i) − 1[y_i = c] / N_c].

    The logits pass through: what comes back for them is ours to add it to, which saves a matrix of
    zeros and a sum of two matrices.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, labels: Tensor, log_prior: Tensor, prior: Tensor, lam: float
    ) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        present, place, counts = torch.unique(labels, return_inverse=True, return_counts=True)
        prior = prior[present]
        first = (prior / counts)[place].unsqueeze(1)
        reached = (first * rows.gather(1, labels.unsqueeze(1))).sum()
        log_weight = log_prior[labels].unsqueeze(1) + math.log(rows.shape[1] * len(rows))
        # Log-sum-exp over the samples, in place: the exponentials become the gradient.
        size = max(1, _BLOCK // len(rows))
        blocks = [
            rows.index_select(1, part).sub_(log_weight) for part in torch.split(present, size)
        ]
        top = torch.cat([block.amax(dim=0) for block in blocks])
        for block, highest in zip(blocks, torch.split(top, size), strict=True):
            block.sub_(highest).exp_()
        total = torch.cat([block.sum(dim=0) for block in blocks])
        level = torch.special.xlogy(1.0, total).add_(top)
        if ctx.needs_input_grad[0]:
            slope = (2 * lam * level).add_(1).mul_(prior).div_(total)
            for block, factor in zip(blocks, torch.split(slope, size), strict=True):
                block.mul_(factor)
            ctx.blocks, ctx.lam = list(zip(torch.split(present, size), blocks, strict=True)), lam
            ctx.save_for_backward(rows, labels, log_prior, first)
        value = (level.square() * lam).add_(level).mul_(prior).sum() - reached
        return rows.view_as(rows), value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None, None]:
        own, factor = grads
        if factor is None:
            return own, None, None, None, None
        rows, labels, log_prior, first = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for
            value = _lader(rows, labels, log_prior, ctx.lam)
            (gradient,) = torch.autograd.grad(value, rows, create_graph=True)
            total = gradient * factor if own is None else own + gradient * factor
            return total, None, None, None, None
        total = torch.zeros_like(rows) if own is None else own
        for classes, columns in ctx.blocks:
            total.index_add_(1, classes, columns * factor)
        total.scatter_add_(1, labels.unsqueeze(1), -first * factor)
        return total, None, None, None, None


def _lader(rows: Tensor, labels: Tensor, log_prior: Tensor, lam: float) -> Tensor:
    """Equations 13, 15 and 16 on all columns, those of absent classes masked."""
    # Products and sums, not @: autocast would do that in half precision.
    prior = log_prior.exp()
    counts = torch.bincount(labels, minlength=len(prior)).to(rows)
    own = rows.gather(1, labels.unsqueeze(1)).squeeze(1)
    first = ((prior / counts)[labels] * own).sum()
    weighed = rows - log_prior[labels].unsqueeze(1)
    level = torch.logsumexp(weighed, dim=0) - math.log(rows.shape[1] * len(rows))
    return (prior * (counts > 0) * (level + lam * level.square())).sum() - first


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
        if released or self.weight is not None:
            self.carried_log = None  # the two terms pull towards different priors
