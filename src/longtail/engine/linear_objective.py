r"""The objective of a linear layer, its exact gradient, and roughly its inverse Hessian.

    Σ_i share_i · ℓ(y_i, W x_i + b) + ½ · weight_decay · ‖W‖²

The shares are those of the loss: its class weights, divided by what its mean divides by. Autograd
is asked for the slopes ∂ℓ/∂logits of a block of rows alone; two matrix products do the rest. Those
are in the features' precision (float16 in float32), sums over samples and blocks in float64.

For a softmax p the Hessian is Σ_i share_i · (diag p_i − p_i p_iᵀ) ⊗ x_i x_iᵀ + weight_decay. Kept
are its diagonal blocks, one a class,

    H_c = Σ_i q_ic · x_i x_iᵀ + weight_decay,      q = share · p(1 − p)

(x has a last entry 1 for the bias), each from rows drawn evenly along the cumulative sum of q_c:
equal weights, and rows that do not matter to the class are not looked at. Adding one vector to all
classes changes no softmax. The blocks do not know it, so they act between two projections that
take the mean over classes out, where only the weight decay is left:

    M g = P H⁻¹ P g + ḡ / weight_decay,             P = 1 − mean over classes

Without them the descent takes far longer. q is taken from the slopes s = share · (p − onehot), as
|s| · (1 − |s| / share), so any loss will do; one whose slopes do not sum to zero gets H⁻¹ alone.

C·D² numbers can be too many: blocks are of the leading principal directions of the rows, as many
as a bound on memory and one on time allow, and a single number for all others.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from longtail.engine.convex_descent import Operator
from longtail.engine.feature_rows import FeatureRows
from longtail.losses import SampleLoss

SAMPLE = 2**24  # numbers of the rows that curvature is measured on
BLOCKS = 2**26  # numbers of all blocks H_c together
_DRAWN = 4  # rows drawn for a block, as a multiple of its width
_LEAST_DRAWN = 256
_RIDGE = 1e-5  # of the mean curvature: keeps blocks of few rows positive in float32


@dataclass(frozen=True, eq=False)
class LinearObjective:
    """The objective as a function of the layer, a (C, D) or, with a bias, (C, D + 1) tensor."""

    rows: FeatureRows
    labels: Tensor  # of which autograd may keep hold
    shares: Tensor  # what each sample counts, in float64
    loss: SampleLoss  # of which `shared_losses` are used
    weight_decay: float  # on the weight
    bias: bool  # whether the last column is one

    def __call__(self, layer: Tensor) -> tuple[float, Tensor]:
        """The value, and the gradient in the precision of products."""
        dim = self.rows.dim
        gradient = torch.zeros_like(layer)
        gradient[:, :dim] = self.weight_decay * layer[:, :dim]
        value = 0.5 * self.weight_decay * float(layer[:, :dim].square().sum())
        for own, rows in self.rows.blocks(width=len(layer)):
            losses, slopes = self.slopes(layer, rows, own)
            value += float(losses.double() @ self.shares[own])
            gradient[:, :dim] += slopes.T @ rows
            if self.bias:
                gradient[:, dim] += slopes.sum(dim=0)
        return value, gradient.to(self.rows.dtype)

    def slopes(self, layer: Tensor, rows: Tensor, own: slice | Tensor) -> tuple[Tensor, Tensor]:
        """The losses of these rows, and share · ∂ℓ/∂logits of each."""
        dim = rows.shape[1]
        weight = layer[:, :dim].to(rows.dtype).T.contiguous()  # multiplied faster than a view
        logits = torch.addmm(layer[:, dim].to(rows), rows, weight) if self.bias else rows @ weight
        with torch.enable_grad():
            losses = shared_losses(self.loss, logits.requires_grad_(), self.labels[own])
            (slopes,) = torch.autograd.grad(losses, logits, self.shares[own].to(losses.dtype))
        return losses.detach(), slopes


def shared_losses(loss: SampleLoss, logits: Tensor, labels: Tensor) -> Tensor:
    """The losses of which the mean or sum is that by `loss_shares`.

    A smoothed label has the class weights of all classes in it, which no share of the sample has.
    """
    if loss.label_smoothing:
        return loss.sample_losses(logits, labels)
    return loss.label_losses(logits, labels)


def loss_shares(loss: SampleLoss, labels: Tensor) -> Tensor:
    """What each of the `shared_losses` counts in the loss, in float64."""
    kept = (labels != loss.ignore_index).double()
    if not kept.any():
        raise ValueError(
            f"fit_linear needs samples that count, but all labels are ignore_index="
            f"{loss.ignore_index}"
        )
    weighted = kept if loss.weight is None else kept * loss.weight.to(kept)[labels]
    total = weighted.sum() if loss.reduction == "mean" else 1.0
    if loss.label_smoothing:
        return kept / total
    return (weighted if loss.alpha is None else weighted * loss.alpha.to(kept)[labels]) / total


@dataclass(frozen=True, eq=False)
class Curvature:
    """What is known of the rows before the first step."""

    objective: LinearObjective
    picked: slice | Tensor  # the numbers of the rows
    rows: Tensor  # the rows themselves, shape (M, D)
    leading: Tensor | None  # their principal directions, shape (D, K); None for all directions
    projected: Tensor  # the rows in those, with a last column of ones if there is a bias
    outside: Tensor  # ‖x‖² in the other directions

    @classmethod
    def of(cls, objective: LinearObjective, num_classes: int) -> Self:
        """Read the rows, in one pass over the blocks if not all are taken."""
        count, dim = len(objective.rows), objective.rows.dim
        picked, rows = _sampled(objective.rows, max(num_classes, dim))
        # The second bound: about eight evaluations' worth of products.
        width = min(math.isqrt(BLOCKS // num_classes), round((4 * count * (dim + 1)) ** (1 / 3)))
        leading, projected, outside = None, rows, rows.new_zeros(len(rows))
        if width < dim + objective.bias:
            some = rows[:: max(1, len(rows) // (_DRAWN * dim))]
            _, vectors = torch.linalg.eigh((some.T @ some).double())
            leading = vectors[:, -max(1, width - 1) :].to(rows.dtype)
            projected = rows @ leading
            outside = (rows.square().sum(1) - projected.square().sum(1)).clamp_min(0)
        if objective.bias:
            projected = torch.cat([projected, projected.new_ones(len(rows), 1)], dim=1)
        return cls(objective, picked, rows, leading, projected, outside)

    def inverse(self, layer: Tensor) -> Operator:
        """M at this layer."""
        slopes = self.objective.slopes(layer, self.rows, self.picked)[1]
        centred = float(slopes.sum(1).abs().sum()) <= 1e-3 * float(slopes.abs().sum())
        weights = _weights(slopes, self.objective.shares[self.picked])
        weights *= len(self.objective.rows) / len(self.rows)
        decay, dim = self.objective.weight_decay, self.objective.rows.dim
        inverses, size = self._inverses(weights, decay)
        apart = dim - (self.projected.shape[1] - self.objective.bias)
        others = decay + (self.outside @ weights) / max(apart, 1) + _RIDGE * size
        least = max(decay, 1e-4 * float(size.mean()), torch.finfo(slopes.dtype).tiny)

        def blocks_alone(g: Tensor) -> Tensor:
            if self.leading is None:
                return torch.bmm(inverses, g.unsqueeze(2)).squeeze(2)
            inside = torch.cat([g[:, :dim] @ self.leading, g[:, dim:]], dim=1)
            moved = torch.bmm(inverses, inside.unsqueeze(2)).squeeze(2)
            split = self.leading.shape[1]
            rest = g[:, :dim] - inside[:, :split] @ self.leading.T
            whole = moved[:, :split] @ self.leading.T + rest / others.unsqueeze(1)
            return torch.cat([whole, moved[:, split:]], dim=1)

        def between_projections(g: Tensor) -> Tensor:
            mean = g.mean(dim=0)
            moved = blocks_alone(g - mean)
            return moved - moved.mean(dim=0) + mean / least

        return between_projections if centred else blocks_alone

    def _inverses(self, weights: Tensor, decay: float) -> tuple[Tensor, Tensor]:
        """H_c⁻¹ in the leading directions, and the mean curvature of each class."""
        width = self.projected.shape[1]
        count = min(max(_DRAWN * width, _LEAST_DRAWN), len(self.rows))
        along = weights.T.cumsum(dim=1)
        even = (torch.arange(count, device=along.device, dtype=along.dtype) + 0.5) / count
        drawn = torch.searchsorted(along, along[:, -1:] * even).clamp_max(len(self.rows) - 1)
        inverses = weights.new_empty(len(along), width, width)
        size = weights.new_empty(len(along))
        for c, own in enumerate(drawn):  # one after the other: all at once would be held thrice
            some = self.projected[own]
            block = (some.T @ some).mul_(along[c, -1] / count)
            diagonal = block.diagonal()
            size[c] = diagonal.mean()
            diagonal[: width - self.objective.bias] += decay
            diagonal += (_RIDGE * size[c]).clamp_min(torch.finfo(size.dtype).tiny ** 0.5)
            factor, failed = torch.linalg.cholesky_ex(block)
            if failed:  # rounding has made it not positive: its diagonal is
                factor = torch.diag(diagonal.sqrt())
            inverses[c] = torch.cholesky_inverse(factor)
        return inverses, size


def _weights(slopes: Tensor, shares: Tensor) -> Tensor:
    """q, at least a tenth of |s|: scaled losses have larger slopes than a softmax."""
    size = slopes.abs()
    part = size / shares.to(size.dtype).clamp_min(torch.finfo(size.dtype).tiny).unsqueeze(1)
    return part.neg_().add_(1).clamp_min_(0.1).mul_(size)


def _sampled(rows: FeatureRows, width: int) -> tuple[slice | Tensor, Tensor]:
    """Numbers of rows, spread over all in no period, and the rows."""
    most = max(1, SAMPLE // width)
    if len(rows) <= most:
        return slice(None), rows.read(slice(0, len(rows)))
    # Multiples of the golden ratio, modulo one: even, and blind to any order of the samples.
    golden = torch.arange(most, device=rows.device, dtype=torch.float64) * ((math.sqrt(5) - 1) / 2)
    picked = torch.unique(((golden % 1) * len(rows)).long())
    parts = (
        block[picked[(picked >= at.start) & (picked < at.stop)] - at.start]
        for at, block in rows.blocks()
    )
    return picked, torch.cat(list(parts))
