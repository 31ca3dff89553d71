r"""Pull: embeddings of one class are drawn together, those of rare classes more (ELM eq. 4).

    Ω(x, y) = log[1 + Σ_{x⁺ of class y in the batch, x⁺ ≠ x} exp(‖Φ(x) − Φ(x⁺)‖² − α_y)]

Only pairs of one class are looked at: memory is of the order of Σ_y n_y² numbers.

Carries: it claims nothing of logits.
"""

from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from longtail.core.arrays import ArrayLike, as_tensor
from longtail.core.prior import Prior, PriorLike, check_same_classes, full_prior
from longtail.losses.regularizer import Regularizer

Margins: TypeAlias = Literal["relative", "prior", "sqrt_prior", "sqrt_count"] | ArrayLike

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
    if isinstance(rule, str):
        return scale * _by_rule(prior, rule)
    margins = scale * as_tensor(rule).detach().to("cpu", torch.float64)
    check_same_classes(len(margins), prior, "margins have")
    if not margins.isfinite().all():
        raise ValueError(f"margins must be finite, got {margins.tolist()[:10]}")
    return margins


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
        self.register_buffer("margins", pull_margins(train, margins, scale))

    def values(self, rows: Tensor, labels: Tensor) -> Tensor:
        """Ω of each row; zero for a row that is alone in its class."""
        left, right = same_class_pairs(labels)
        margins = self.margins.to(rows)[labels[left]]
        values: Tensor = _PullTerm.apply(rows, left, right, margins)  # type: ignore[no-untyped-call]
        return values


def same_class_pairs(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Every pair of rows of one class, once.

    >>> left, right = same_class_pairs(torch.tensor([7, 3, 7, 7]))
    >>> sorted(zip(left.tolist(), right.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = labels.argsort(stable=True)
    _, sizes = torch.unique_consecutive(labels[order], return_counts=True)
    place = torch.arange(len(labels), device=labels.device)
    ends = sizes.cumsum(0).repeat_interleave(sizes)
    later = ends - place - 1  # how many rows of its class come after each
    left = place.repeat_interleave(later)
    first = (later.cumsum(0) - later).repeat_interleave(later)
    right = left + 1 + torch.arange(len(left), device=labels.device) - first
    return order[left], order[right]


class _PullTerm(torch.autograd.Function):
    """Ω of each row. Differences of features are made in chunks, and again for the gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, left: Tensor, right: Tensor, margins: Tensor) -> Tensor:
        excess = torch.empty_like(margins)
        for part in _chunks(len(left), rows.shape[1]):
            difference = rows[left[part]] - rows[right[part]]
            excess[part] = difference.square().sum(dim=1) - margins[part]
        # Log-sum-exp over the pairs of each row and a zero, for the one.
        top = rows.new_zeros(len(rows))
        top = top.scatter_reduce(0, left, excess, "amax").scatter_reduce(0, right, excess, "amax")
        from_left, from_right = (excess - top[left]).exp(), (excess - top[right]).exp()
        total = (-top).exp().index_add_(0, left, from_left).index_add_(0, right, from_right)
        ctx.save_for_backward(rows, left, right, from_left / total[left], from_right / total[right])
        return top + total.log()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        rows, left, right, on_left, on_right = ctx.saved_tensors
        slope = 2 * (on_left * grad[left] + on_right * grad[right])
        gradient = torch.zeros_like(rows)
        for part in _chunks(len(left), rows.shape[1]):
            pull = slope[part].unsqueeze(1) * (rows[left[part]] - rows[right[part]])
            gradient.index_add_(0, left[part], pull).index_add_(0, right[part], pull, alpha=-1)
        return gradient, None, None, None


def _chunks(pairs: int, width: int) -> list[slice]:
    size = max(1, _CHUNK // max(width, 1))
    return [slice(start, start + size) for start in range(0, pairs, size)]
