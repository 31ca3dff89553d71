r"""Distances between rows and centres, without an N × C × D array.

    ‖x − μ‖² = ‖x‖² + ‖μ‖² − 2 x·μ,        x and μ taken about the mean of the centres

One matrix product. Taking both about that mean removes the common part, whose digits the
subtraction would lose; what then lies below the rounding error of the sum counts as zero. Roots
have gradient zero at zero, and stay finite when differentiated twice.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

_ROUNDING = 16  # how many units in the last place of ‖x‖² + ‖μ‖² are no distance


def squared_distances(rows: Tensor, centers: Tensor) -> Tensor:
    """‖x − μ_y‖² for rows of shape (..., D) and centres of shape (C, D), as (..., C).

    >>> squared_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 0.0]]))
    tensor([[25., 16.]])
    """
    with without_autocast(rows):
        middle = centers.detach().mean(dim=0)
        rows, centers = rows - middle, centers - middle
        whole = rows.square().sum(dim=-1, keepdim=True) + centers.square().sum(dim=-1)
        squared = whole - 2 * (rows @ centers.T)
        least = _ROUNDING * torch.finfo(squared.dtype).eps * whole.detach()
        return torch.where(squared <= least, 0.0, squared)


def distances(rows: Tensor, centers: Tensor) -> Tensor:
    """‖x − μ_y‖, as `squared_distances`."""
    return root(squared_distances(rows, centers))


def without_autocast(rows: Tensor) -> AbstractContextManager[Any]:
    """Where differences are taken: half precision, which autocast brings in, would lose them."""
    device = rows.device.type
    on = torch.is_autocast_enabled(device)
    return torch.autocast(device, enabled=False) if on else nullcontext()


def root(squares: Tensor) -> Tensor:
    """The square root, with gradient zero at zero."""
    at_zero = squares <= 0  # so asked, NaN stays NaN
    return torch.where(at_zero, 0.0, torch.where(at_zero, 1.0, squares).sqrt())


def unit(rows: Tensor) -> Tensor:
    """Rows scaled to length one; a row of zeros stays, with gradient zero.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    squares = rows.square().sum(dim=-1, keepdim=True)
    at_zero = squares <= 0
    return torch.where(at_zero, 0.0, rows * torch.where(at_zero, 1.0, squares).rsqrt())
