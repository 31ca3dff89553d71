r"""Least squares with x ≥ 0, exactly: min ½ xᵀAx − bᵀx for a positive definite A.

Block principal pivoting (Portugal, Júdice and Vicente, 1994; Kim and Park, 2011): guess which
entries are positive, solve for them, exchange all that turn out wrong; exchange only the last of
them if that has not helped for some rounds, which cannot go round in circles.
"""

import torch
from torch import Tensor

_PATIENCE = 3


def solve_nonnegative(matrix: Tensor, vector: Tensor) -> Tensor:
    """The x ≥ 0 that minimises ½ xᵀAx − bᵀx; A must be symmetric and positive definite."""
    size = len(vector)
    positive = torch.ones(size, dtype=torch.bool, device="cpu")
    fewest, patience = size + 1, _PATIENCE
    while True:
        x, slope = _guess(matrix, vector, positive)
        wrong = torch.where(positive, x < 0, slope < -_rounding(matrix, vector))
        number = int(wrong.sum())
        if not number:
            return x
        if number < fewest:
            fewest, patience = number, _PATIENCE
        elif patience:
            patience -= 1
        else:
            wrong = torch.arange(size, device="cpu") == int(wrong.nonzero().max())
        positive = positive ^ wrong


def _guess(matrix: Tensor, vector: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """The solution if just these entries are positive, and the gradient there."""
    x = torch.zeros_like(vector)
    at = positive.nonzero().flatten()
    if len(at):
        x[at] = torch.linalg.solve(matrix[at[:, None], at], vector[at])
    return x, matrix @ x - vector


def _rounding(matrix: Tensor, vector: Tensor) -> float:
    """A gradient that is zero but for rounding: an entry at zero must not flicker for ever."""
    return 1e-12 * float(matrix.abs().max() + vector.abs().max())
