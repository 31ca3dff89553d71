r"""Squared distances in which every class measures with a map of its own.

    d_xy = Σ_k s_yk · ((Φ − μ_y)ᵀ M_y)_k²

A few classes at a time. When gradients are wanted they are computed again going backward, so that
the N × C × D coordinates are never there at once.
"""

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Entries of the coordinates of some classes: 16 MB in float32.
_BLOCK = 2**22


def class_squares(
    features: Tensor, centers: Tensor, maps: Tensor, shares: Tensor | None = None
) -> Tensor:
    """The distances, of shape (..., C).

    Args:
        features: Shape (..., D).
        centers: μ, shape (C, D).
        maps: M, shape (C, D, r).
        shares: s, shape (C, r); ones without it.
    """
    rows = features.reshape(-1, features.shape[-1])
    some = max(1, _BLOCK // max(1, rows.shape[0] * rows.shape[1]))
    parts = []
    for start in range(0, len(centers), some):
        at = slice(start, start + some)
        given = (rows, centers[at], maps[at], None if shares is None else shares[at])
        if torch.is_grad_enabled():
            parts.append(checkpoint(_squares, *given, use_reentrant=False))
        else:
            parts.append(_squares(*given))
    return torch.cat(parts).T.reshape(*features.shape[:-1], len(centers))


def _squares(rows: Tensor, centers: Tensor, maps: Tensor, shares: Tensor | None) -> Tensor:
    squares = torch.bmm(rows - centers.unsqueeze(1), maps).square()
    if shares is None:
        return squares.sum(dim=2)
    return torch.bmm(squares, shares.unsqueeze(2)).squeeze(2)
