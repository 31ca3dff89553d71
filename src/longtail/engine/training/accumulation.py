r"""What the pieces of a batch count, so that their gradients add up to that of the whole batch.

A loss that is a mean over samples, (1/W) Σ_i w_i·ℓ_i with W = Σ_i w_i, is the sum over pieces of
W_piece/W times the mean over the piece. With k processes, whose gradients are averaged, a piece
counts k·W_piece/W, W being that of all processes. Losses of the whole batch (LADE, ELM) see the
pieces of all processes themselves: there W_piece is of all processes too, and k is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from longtail.engine.training.process_group import mean_over_processes
from longtail.losses import Loss


def piece_shares(loss: Loss, labels: Sequence[Tensor]) -> list[float]:
    """How much the loss of each piece counts on this process."""
    weight = loss.class_weight
    if weight is None or labels[0].is_floating_point():
        totals = [float(len(piece)) for piece in labels]
        return [total / sum(totals) for total in totals]
    totals = torch.stack([weight[piece].sum() for piece in labels]).tolist()
    device = labels[0].device
    if loss.gathers:
        totals = [mean_over_processes(total, device) for total in totals]
    whole = mean_over_processes(sum(totals), device)
    return [total / whole for total in totals]
