r"""The objective of a linear layer and its exact gradient, a block of rows at a time.

    Σ_i share_i · ℓ(y_i, W x_i + b) + ½ · weight_decay · ‖W‖²

The shares are those of the loss: its class weights, divided by what its mean divides by. Autograd
is asked for the slopes ∂ℓ/∂logits of a block alone; two matrix products do the rest. Those are in
the features' precision (float16 in float32), sums over samples and blocks in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array
from longtail.core.blocks import BLOCK, slices
from longtail.core.tensors import wide_dtype
from longtail.losses import SampleLoss

Rows: TypeAlias = Array


@dataclass(frozen=True, eq=False)
class LinearObjective:
    """The objective as a function of the layer, a (C, D) or, with a bias, (C, D + 1) tensor.

    Attributes:
        features: Shape (N, D); NumPy arrays are read in blocks and may lie on the disk.
        labels: Class indices, of which autograd may keep hold.
        shares: What each sample counts, in float64.
        loss: The loss, of which `shared_losses` are used.
        weight_decay: On the weight.
        bias: Whether the last column is a bias.
    """

    features: Rows
    labels: Tensor
    shares: Tensor
    loss: SampleLoss
    weight_decay: float
    bias: bool

    @property
    def dtype(self) -> torch.dtype:
        """The precision of products."""
        return block_of(self.features, 0, 0).dtype

    def __call__(self, layer: Tensor) -> tuple[float, Tensor]:
        """The value, and the gradient in the precision of products."""
        dim = self.features.shape[1]
        gradient = torch.zeros_like(layer)
        gradient[:, :dim] = self.weight_decay * layer[:, :dim]
        value = 0.5 * self.weight_decay * float(layer[:, :dim].square().sum())
        for start, rows in blocks(self.features, len(layer)):
            own = slice(start, start + len(rows))
            losses, slopes = self.slopes(layer, rows, own)
            value += float(losses.double() @ self.shares[own])
            gradient[:, :dim] += slopes.T @ rows
            if self.bias:
                gradient[:, dim] += slopes.sum(dim=0)
        return value, gradient.to(self.dtype)

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


def blocks(features: Rows, num_classes: int = 1) -> Iterator[tuple[int, Tensor]]:
    """The number of the first row, and the rows, of each block."""
    for rows in slices(len(features), max(num_classes, *features.shape[1:]), BLOCK):
        yield rows.start, block_of(features, rows.start, rows.stop)


def block_of(features: Rows, start: int, stop: int) -> Tensor:
    """Some rows as a tensor; without a copy if the features are one."""
    if isinstance(features, Tensor):
        return features[start:stop]
    # A copy: torch warns of memory that it may not write to.
    rows = torch.from_numpy(np.array(features[start:stop], order="C"))
    return rows.to(wide_dtype(rows.dtype))
