r"""Balanced softmax and LADER in one pass: the softmax of the one term serves the other.

    share · Σ_i −log p_i[y_i] + strength · LADER,      p_i = softmax(f_i + log p_s)   (LADE eq. 20)

With v_i = exp(f_i[y_i]) / p_i[y_i] the sum of LADE eq. 13 is

    Σ_i exp(f_i[c]) / p_s(y_i) = Σ_i v_i · p_i[c] / p_s(c) = S_c / p_s(c),

a product of a vector and the matrix p, and the gradient at f_i[c], c in the batch, is

    p_i[c] · [share + strength · v_i · p_s(c)(1 + 2λL_c) / S_c]
        − 1[y_i = c] · [share + strength · p_s(c) / N_c].

Where p underflows so far that S_c could miss a digit, the terms are taken one after the other.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.losses.kernel import can_look


@dataclass(frozen=True, eq=False)
class Terms:
    """What stays the same from batch to batch: p_s and its logarithm, λ, what each term counts."""

    log_prior: Tensor
    prior: Tensor
    lam: float
    share: float
    strength: float


def joined(rows: Tensor, labels: Tensor, terms: Terms) -> Tensor:
    """The sum of both terms; `rows` are logits of shape (N, C), N > 0, labels all in range."""
    known = _fused(rows.detach(), labels, terms) if can_look(rows) else None
    if known is None:
        return _plain(rows, labels, terms)
    value: Tensor = _Known.apply(rows, *known, labels, terms)  # type: ignore[no-untyped-call]
    return value


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


class _Known(torch.autograd.Function):
    """A value whose gradient was found with it."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, value: float, gradient: Tensor, labels: Tensor, terms: Terms
    ) -> Tensor:
        ctx.gradient, ctx.terms = gradient, terms
        ctx.save_for_backward(rows, labels)
        return rows.new_full((), value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        rows, labels = ctx.saved_tensors
        gradient, ctx.gradient = ctx.gradient, None  # handed out once: its taker may change it
        if torch.is_grad_enabled():  # a second derivative is asked for
            value = _plain(rows, labels, ctx.terms)
            (gradient,) = torch.autograd.grad(value, rows, create_graph=True)
            return gradient * grads[0], None, None, None, None
        if gradient is None:  # asked for again: the same numbers, so there is one again
            gradient = cast(tuple[float, Tensor], _fused(rows, labels, ctx.terms))[1]
        if grads[0].item() != 1.0:
            gradient = gradient * grads[0]
        return gradient, None, None, None, None
