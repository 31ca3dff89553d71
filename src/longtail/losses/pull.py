r"""Pull: embeddings of one class are drawn together, those of rare classes more (ELM eq. 4).

    Ω(x, y) = log[1 + Σ_{x⁺ of class y in the batch, x⁺ ≠ x} exp(‖Φ(x) − Φ(x⁺)‖² − α_y)]

Only pairs of one class are looked at: memory is of the order of Σ_y n_y² numbers.

Carries: it claims nothing of logits.
"""

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.losses.regularizer import Regularizer

Margins: TypeAlias = Literal["relative", "prior", "sqrt_prior", "sqrt_count"] | ArrayLike

_LOG2_E = math.log2(math.e)
_CHUNK = 1 << 22  # numbers: how much of pairs × dimensions is held at once


def pull_margins(train: PriorLike, rule: Margins = "relative", scale: float = 1.0) -> Tensor:
    """α, one margin a class, float64: pairs closer than √α_y are hardly drawn.

    Args:
        train: The training prior, or class counts.
        rule: "relative": scale·√(P(y)/max P), for features of norm one, whose squared distances
            lie in 0 to 4: a pair of the largest class at 60 degrees has 1. "prior": scale·P(y);
            "sqrt_prior": scale·√P(y); "sqrt_count": scale·√n_y, for features without a norm, as
            in the paper. Or the margins themselves.
        scale: A factor. The paper has P(y) for CIFAR-10, √n_y for CIFAR-100 and iNaturalist,
            10·√P(y) for ImageNet.

    >>> pull_margins([64, 16, 4]).tolist()
    [1.0, 0.5, 0.25]
    """
    prior = full_prior(train, "train")
    check_number(scale, "scale", least=0)
    if isinstance(rule, str):
        return scale * _by_rule(prior, rule)
    return scale * check_per_class(rule, prior.num_classes, "margins", least="any")


def _by_rule(prior: Prior, rule: str) -> Tensor:
    if rule == "relative":
        return (prior.probs / prior.probs.max()).sqrt()
    if rule == "prior":
        return prior.probs
    if rule == "sqrt_prior":
        return prior.probs.sqrt()
    if rule == "sqrt_count":
        if prior.counts is None:
            raise ValueError(
                "margins='sqrt_count' needs class counts, but this prior was made of "
                "probabilities; make it with Prior.of(counts)"
            )
        return prior.counts.double().sqrt()
    raise ValueError(
        'margins must be "relative", "prior", "sqrt_prior", "sqrt_count" or one number a class, '
        f"got {rule!r}"
    )


class Pull(Regularizer):
    """The pull term on features: `Pull(train)(features, labels)`.

    Args:
        train: The training prior, or class counts.
        margins: The rule for α, or one margin a class; see `pull_margins`.
        scale: A factor on the margins.
        ignore_index: Rows with this label are left out.
        gather: Whether to see the batches of all processes.

    >>> import torch
    >>> features = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> Pull([64, 16])(features, torch.tensor([1, 1, 0]))
    tensor(0.5696)
    """

    margins: Tensor

    def __init__(
        self,
        train: PriorLike,
        margins: Margins = "relative",
        scale: float = 1.0,
        *,
        ignore_index: int = -100,
        gather: bool = True,
    ) -> None:
        super().__init__(ignore_index=ignore_index, gather=gather)
        self.hold("margins", pull_margins(train, margins, scale))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row; zero for a row that is alone in its class."""
        first, second = same_class_pairs(labels)
        margins = self.cast("margins", rows)[labels]
        values: Tensor = _PullTerm.apply(rows, first, second, margins)  # type: ignore[no-untyped-call]
        return values


def same_class_pairs(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Every pair of different rows of one class, both ways round, by their first row.

    >>> first, second = same_class_pairs(torch.tensor([7, 3, 7, 7]))
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 2), (0, 3), (2, 0), (2, 3), (3, 0), (3, 2)]
    """
    # In NumPy: a dozen operations on a few hundred integers, where torch's own overhead is all.
    known = labels.cpu().numpy()
    order = known.argsort(kind="stable")
    in_order = known[order]
    start = np.searchsorted(in_order, in_order, side="left")
    others = np.searchsorted(in_order, in_order, side="right") - start - 1
    # By row, not by class: the row, where its class starts in the order, and its own place there.
    rank = order.argsort()
    start, others = start[rank], others[rank]
    first = np.arange(len(known)).repeat(others)
    begins = others.cumsum() - others
    place = np.arange(len(first)) + (start - begins)[first]
    place += place >= rank[first]  # a row is no partner of itself
    pairs = torch.from_numpy(np.stack([first, order[place]])).to(labels.device)
    return pairs[0], pairs[1]


class _PullTerm(torch.autograd.Function):
    """Ω of each row; `first` of the pairs must be in order.

    With e_ij = ‖Φ_i − Φ_j‖² − α the gradient at Φ_i is Σ_j 2u_ij·(Φ_i − Φ_j), where
    u_ij = g_i·exp(e_ij − Ω_i) + g_j·exp(e_ij − Ω_j): no pair's difference has to be kept.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, first: Tensor, second: Tensor, margins: Tensor) -> Tensor:
        if not len(first):
            ctx.save_for_backward(rows)
            return rows.new_zeros(len(rows))
        excess = _squared_distances(rows, first, second).sub_(margins[first])
        # Log-sum-exp over the pairs of a row and a zero.
        top = rows.new_zeros(len(rows)).scatter_reduce_(0, first, excess, "amax")
        total = _exp(-top).index_add_(0, first, _exp(excess - top[first]))
        values = top + torch.log1p(total - 1)
        ctx.save_for_backward(rows, first, second, excess, values)
        return values

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        if len(ctx.saved_tensors) == 1:  # no pairs
            return torch.zeros_like(ctx.saved_tensors[0]), None, None, None
        rows, first, second, excess, values = ctx.saved_tensors
        slope = _exp(excess - values[first]) * grad[first]
        slope += _exp(excess - values[second]) * grad[second]
        own = rows.new_zeros(len(rows)).index_add_(0, first, slope)
        begins = torch.searchsorted(first, torch.arange(len(rows), device=rows.device))
        # The sum of the partners of each row, weighted: bags of rows.
        partners = F.embedding_bag(second, rows, begins, mode="sum", per_sample_weights=slope)
        return rows.mul(own.unsqueeze(1)).sub_(partners).mul_(2), None, None, None


def _squared_distances(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """By differences, which products would lose for features far from zero; in chunks."""
    size = max(1, _CHUNK // max(rows.shape[1], 1))
    parts = [slice(start, start + size) for start in range(0, len(first), size)]
    distances = [
        rows.index_select(0, first[p]).sub_(rows.index_select(0, second[p])).square_().sum(dim=1)
        for p in parts
    ]
    return torch.cat(distances) if len(distances) > 1 else distances[0]


def _exp(x: Tensor) -> Tensor:
    """By exp2: torch's exp would wait for MKL's threads, also for a few numbers."""
    return torch.exp2(x * _LOG2_E)
