r"""ELM: margins on logits, and a pull on embeddings that is stronger for rare classes (ELM eq. 4).

    ℓ = log[1 + Σ_{y'≠y} (π_{y'}/π_y) · exp(f_{y'} − f_y)] + λ · Ω(x, y)
    Ω(x, y) = log[1 + Σ_{x⁺ of class y in the batch, x⁺ ≠ x} exp(‖Φ(x) − Φ(x⁺)‖² − α_y)]

Only pairs of one class are looked at: memory is of the order of Σ_y n_y² numbers.

Carries: uniform, claimed for the logit term; Ω shapes the features only.
"""

from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.blocks import BLOCK, slices
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import PriorLike, full_prior
from longtail.core.tensors import as_tensor
from longtail.losses.change_of_prior import LogitAdjusted
from longtail.losses.kernel import fused_value
from longtail.losses.loss import LossOptions
from longtail.losses.regularizer import RegularizedLoss, Regularizer, TermOptions
from longtail.ranges import NonNegative, Positive

Margins: TypeAlias = Literal["relative", "prior", "sqrt_prior", "sqrt_count", "count"] | ArrayLike

_FAR = 40.0  # exponentials up to this can be summed as they are, in float32 too


def pull_margins(train: PriorLike, rule: Margins = "relative", scale: float = 1.0) -> Tensor:
    """α, one margin a class, float64: pairs closer than √α_y are hardly drawn.

    By the rule "relative" scale·√(P(y)/max P), for features of norm one, whose squared distances
    lie in 0 to 4: a pair of the largest class at 60 degrees has 1. "prior" is scale·P(y),
    "sqrt_prior" scale·√P(y), "sqrt_count" scale·√n_y and "count" scale·n_y, for features without a
    norm, as in the paper. Or the rule is the margins themselves.

    >>> pull_margins([64, 16, 4]).tolist()
    [1.0, 0.5, 0.25]
    """
    prior = full_prior(train, "train")
    check_number(scale, "scale", least=0)
    if not isinstance(rule, str):
        return as_tensor(scale * check_per_class(rule, prior.num_classes, "margins", least="any"))
    if rule in ("sqrt_count", "count") and prior.counts is None:
        raise ValueError(
            f"margins={rule!r} needs class counts, but this prior was made of "
            "probabilities; make it with Prior.of(counts)"
        )
    counts = prior.probs if prior.counts is None else prior.counts
    rules = {
        "relative": np.sqrt(prior.probs / prior.probs.max()),
        "prior": prior.probs,
        "sqrt_prior": np.sqrt(prior.probs),
        "sqrt_count": np.sqrt(counts),
        "count": counts,
    }
    if rule not in rules:
        raise ValueError(
            f"margins must be one of {', '.join(rules)}, or one number a class, got {rule!r}"
        )
    return as_tensor(scale * rules[rule])


class Pull(Regularizer):
    """The pull term on features: `Pull(train)(features, labels)`; margins as in `pull_margins`."""

    margins: Tensor

    def __init__(
        self,
        train: PriorLike,
        margins: Margins = "relative",
        scale: NonNegative = 1.0,
        **options: Unpack[TermOptions],
    ) -> None:
        super().__init__(**options)
        self._hold("margins", pull_margins(train, margins, scale))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row; zero for a row that is alone in its class."""
        pairs = same_class_pairs(labels)
        margins = self._cast("margins", rows)[labels]
        values: Tensor = _PullTerm.apply(rows, *pairs, margins)  # type: ignore[no-untyped-call]
        return values

    def mean(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The mean of Ω."""
        fused = partial(_fused, labels=labels, margins=self._cast("margins", rows))
        return fused_value(rows, fused, partial(super().mean, labels=labels))


class ELM(RegularizedLoss):
    """The logit-adjusted loss with the pull term: `ELM(train)(logits, labels, features=Φ)`.

    Published (A.2): α_y = P(y), λ = 0.01 for CIFAR-10; α_y = √n_y, λ = 0.01 for CIFAR-100 and
    iNaturalist; α_y = 10·√P(y), λ = 0.001 for ImageNet; α_y = n_y with λ = 0.01 "appears to offer
    good performance across many datasets". Margins and scale as in `pull_margins`.

    >>> loss = ELM([70, 25, 5], lam=0.1)
    >>> logits, features = torch.tensor([[2.0, 0.5, -1.0]] * 2), torch.eye(2)
    >>> loss(logits, torch.tensor([1, 1]), features=features)
    tensor(2.772)
    """

    def __init__(
        self,
        train: PriorLike,
        lam: NonNegative = 0.01,
        margins: Margins = "relative",
        scale: Positive = 1.0,
        *,
        gather: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        pull = Pull(train, margins, scale, gather=gather)
        super().__init__(LogitAdjusted(train, **options), pull, lam, on="features")


def same_class_pairs(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First and second row of every pair of one class, and where the pairs of each row begin.

    >>> first, second, begins = same_class_pairs(torch.tensor([7, 3, 7, 7]))
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 2), (0, 3), (2, 0), (2, 3), (3, 0), (3, 2)]
    """
    # In NumPy: a dozen operations on a few hundred integers, where torch's own overhead is all.
    classes = (labels if labels.is_cpu else labels.cpu()).numpy()
    counts = np.bincount(classes)
    others = counts[classes] - 1
    # Rows in the order of their classes; where each row's class starts there, and its rank.
    order = classes.argsort(kind="stable")
    rows = np.arange(len(classes))
    rank = np.empty_like(order)
    rank[order] = rows
    start = (counts.cumsum() - counts)[classes]
    begins = others.cumsum() - others
    first = rows.repeat(others)
    partner = np.arange(len(first)) + (start - begins)[first]
    partner += partner >= rank[first]  # a row is no partner of itself
    left, right, starts = map(torch.from_numpy, (first, order[partner], begins))
    return left.to(labels.device), right.to(labels.device), starts.to(labels.device)


def _fused(rows: Tensor, labels: Tensor, margins: Tensor) -> tuple[float, Tensor] | None:
    """The mean of Ω and its gradient, or None where pairs are too many or too far apart for it."""
    left, right, begins = same_class_pairs(labels)
    if not 0 < len(left) * rows.shape[1] <= BLOCK:
        return None
    first, second = left.numpy(), right.numpy()
    apart = rows.index_select(0, left).sub_(rows.index_select(0, right))
    excess = apart.square().sum(dim=1).numpy()
    excess -= margins.numpy()[labels.numpy()[first]]
    if not excess.max() < _FAR:
        return None
    terms = np.exp(excess)
    total = np.bincount(first, terms, len(rows)) + 1
    slope = (1 / total).astype(terms.dtype)
    slope = terms * (slope[first] + slope[second]) * (2 / len(rows))
    every, weights = torch.from_numpy(np.arange(len(first))), torch.from_numpy(slope)
    drawn = F.embedding_bag(every, apart, begins, mode="sum", per_sample_weights=weights)
    return float(np.log(total).sum() / len(rows)), drawn


class _PullTerm(torch.autograd.Function):
    """Ω of each row.

    With e_ij = ‖Φ_i − Φ_j‖² − α the gradient at Φ_i is Σ_j 2u_ij·(Φ_i − Φ_j), where
    u_ij = g_i·exp(e_ij − Ω_i) + g_j·exp(e_ij − Ω_j): no pair's difference has to be kept.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, first: Tensor, second: Tensor, begins: Tensor, margins: Tensor
    ) -> Tensor:
        excess = _squared_distances(rows, first, second).sub_(margins[first])
        # Log-sum-exp over the pairs of a row and a zero.
        top = rows.new_zeros(len(rows)).scatter_reduce_(0, first, excess, "amax")
        total = torch.exp(-top).index_add_(0, first, torch.exp(excess - top[first]))
        values = top + total.log()
        ctx.save_for_backward(rows, first, second, begins, excess, values)
        return values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        rows, first, second, begins, excess, values = ctx.saved_tensors
        slope = torch.exp(excess - values[first]) * grad[first]
        slope += torch.exp(excess - values[second]) * grad[second]
        slope *= 2
        own = rows.new_zeros(len(rows)).index_add_(0, first, slope)
        # The partners of a row are a bag of rows.
        partners = F.embedding_bag(second, rows, begins, mode="sum", per_sample_weights=slope)
        return (rows * own.unsqueeze(1)).sub_(partners), None, None, None, None


def _squared_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """By differences, which products would lose for features far from zero; in blocks."""
    squares = rows.new_empty(len(first))
    for at in slices(len(first), rows.shape[1], BLOCK):
        apart = rows.index_select(0, first[at]).sub_(rows.index_select(0, second[at]))
        squares[at] = apart.square_().sum(dim=1)
    return squares
