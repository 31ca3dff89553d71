r"""Pull: embeddings of one class are drawn together, those of rare classes more (ELM eq. 4).

    Ω(x, y) = log[1 + Σ_{x⁺ of class y in the batch, x⁺ ≠ x} exp(‖Φ(x) − Φ(x⁺)‖² − α_y)]

Only pairs of one class are looked at: memory is of the order of Σ_y n_y² numbers.

Carries: it claims nothing of logits.
"""

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.numbers import check_number, check_per_class
from longtail.core.prior import Prior, PriorLike, full_prior
from longtail.losses.regularizer import Regularizer, add_rows

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
        left, right = same_class_pairs(labels)
        margins = self.cast("margins", rows)[labels[left]]
        values: Tensor = _PullTerm.apply(rows, left, right, margins)  # type: ignore[no-untyped-call]
        return values


def same_class_pairs(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Every pair of rows of one class, once.

    >>> left, right = same_class_pairs(torch.tensor([7, 3, 7, 7]))
    >>> sorted(zip(left.tolist(), right.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    # In NumPy: a dozen operations on a few hundred integers, where torch's own overhead is all.
    known = labels.cpu().numpy()
    order = known.argsort(kind="stable")
    in_order, place = known[order], np.arange(len(known))
    # How many rows of its class come after each, in this order: its partners.
    later = np.searchsorted(in_order, in_order, side="right") - place - 1
    left = place.repeat(later)
    # The partners of row i are i + 1, i + 2, ...: count on from where its pairs begin.
    right = np.arange(len(left)) + (place + 1 - later.cumsum() + later)[left]
    pairs = torch.from_numpy(np.stack([order[left], order[right]])).to(labels.device)
    return pairs[0], pairs[1]


class _PullTerm(torch.autograd.Function):
    """Ω of each row. Differences of features are made in chunks, and again for the gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, left: Tensor, right: Tensor, margins: Tensor) -> Tensor:
        squares = [
            _difference(rows, left[part], right[part]).square_().sum(dim=1)
            for part in _chunks(len(left), rows.shape[1])
        ]
        excess = torch.cat(squares) - margins if squares else margins
        # Each pair counts at both of its ends. Log-sum-exp over the pairs of a row and a zero, by
        # exp2 and log1p: exp and log of so few numbers would wait for MKL's threads.
        ends, twice = torch.cat([left, right]), excess.repeat(2)
        top = rows.new_zeros(len(rows)).scatter_reduce_(0, ends, twice, "amax")
        terms = torch.exp2((twice - top[ends]) * _LOG2_E)
        total = torch.exp2(top * -_LOG2_E).scatter_add_(0, ends, terms)
        ctx.save_for_backward(rows, left, right, ends, terms / total[ends])
        return top + torch.log1p(total - 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        rows, left, right, ends, shares = ctx.saved_tensors
        slope = 2 * (shares * grad[ends]).view(2, -1).sum(dim=0)
        gradient = torch.zeros_like(rows)
        for part in _chunks(len(left), rows.shape[1]):
            pull = _difference(rows, left[part], right[part]).mul_(slope[part].unsqueeze(1))
            add_rows(gradient, left[part], pull)
            add_rows(gradient, right[part], pull.neg_())
        return gradient, None, None, None


def _difference(rows: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return rows.index_select(0, left).sub_(rows.index_select(0, right))


def _chunks(pairs: int, width: int) -> list[slice]:
    size = max(1, _CHUNK // max(width, 1))
    return [slice(start, min(start + size, pairs)) for start in range(0, pairs, size)]
