r"""L-BFGS whose first guess of the inverse Hessian is given, for smooth convex functions.

The direction is −H·g. H is M, refreshed now and then at the present point, corrected by the latest
pairs of step s and change of gradient y as usual; M is scaled to fit the latest of them,

    γ = Σ sᵀy / Σ yᵀMy

The line search looks at slopes before values: near a minimum, values of float32 sums differ by
less than they are rounded, slopes do not. A step is taken if the slope along it has risen to at
least 0.9 of the first one, and either the value has fallen enough or, where values say nothing
more, the slope is not above 0.8 of the first with the other sign (the approximate Wolfe conditions
of Hager and Zhang, 2005).
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

_HISTORY = 20
_FITTED = 5  # pairs that γ is fitted to
_FIRST_REFRESH, _REFRESH_FACTOR = 8, 3  # after 8 iterations, then three times as many
_WORTH = 12  # iterations that a refresh must save to be worth it
_MOST_TRIALS = 20
_STEEP, _FLAT, _ENOUGH = 0.9, 0.8, 0.1

Operator: TypeAlias = Callable[[Tensor], Tensor]
Evaluate: TypeAlias = Callable[[Tensor], tuple[float, Tensor]]  # the value and the gradient


class Point(NamedTuple):
    """A place, in float64, with the value and the gradient there."""

    at: Tensor
    value: float
    gradient: Tensor


class _Pair(NamedTuple):
    step: Tensor
    change: Tensor
    product: float


def descend(
    evaluate: Evaluate,
    start: Tensor,
    inverse_hessian: Callable[[Tensor], Operator],
    *,
    max_iter: int,
    tolerance: float,
    progress: Callable[[int, float], None] | None = None,
) -> Point:
    """The lowest point found, from a start in float64.

    It stops where no entry of the gradient is larger than the tolerance, or where no step goes
    down. `inverse_hessian` is M at a place: a symmetric positive linear map.
    """
    point = Point(start, *evaluate(start))
    pairs: list[_Pair] = []
    first: Operator = torch.clone
    scale, refresh = min(1.0, 1 / max(float(point.gradient.norm()), 1e-30)), _FIRST_REFRESH
    since, then = 0, float(point.gradient.abs().max())
    for iteration in range(1, max_iter + 1):
        largest = float(point.gradient.abs().max())
        if not largest > tolerance:
            break
        if iteration > refresh and _far(largest, then, iteration - since, tolerance):
            first = torch.clone  # lets go of the last one before the next is made
            first, refresh = inverse_hessian(point.at), iteration * _REFRESH_FACTOR
            scale = _scale(first, pairs[-_FITTED:])
            since, then = iteration, largest
        elif pairs and not since:
            scale = _scale(first, pairs[-1:])
        step = _direction(point.gradient, pairs, first, scale)
        reached = _search(evaluate, point, step)
        if reached is None:
            if not pairs:
                break
            pairs.clear()  # they may be rounding alone: once more without
            continue
        length, after = reached
        step.mul_(length)
        change = after.gradient - point.gradient
        product = _dot(step, change)
        if product > 1e-10 * math.sqrt(_dot(step, step) * _dot(change, change)):
            pairs.append(_Pair(step, change, product))
            del pairs[:-_HISTORY]
        point = after
        if progress is not None:
            progress(iteration, point.value)
    return point


def _direction(gradient: Tensor, pairs: list[_Pair], first: Operator, scale: float) -> Tensor:
    """−H·g by the two loops over the pairs."""
    rest = gradient.neg()
    shares = []
    for pair in reversed(pairs):
        shares.append(_dot(pair.step, rest) / pair.product)
        rest.add_(pair.change, alpha=-shares[-1])
    direction = first(rest).mul_(scale)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        direction.add_(pair.step, alpha=share - _dot(pair.change, direction) / pair.product)
    return direction


def _search(evaluate: Evaluate, start: Point, step: Tensor) -> tuple[float, Point] | None:
    """How far to go along the step and the point there; None if no length will do."""
    first = _dot(start.gradient, step)
    if not first < 0:
        return None
    noise = 16 * torch.finfo(step.dtype).eps * abs(start.value)
    length, low, low_slope, high = 1.0, 0.0, first, math.inf
    for _ in range(_MOST_TRIALS):
        at = start.at.add(step, alpha=length)
        reached = Point(at, *evaluate(at))
        slope = _dot(reached.gradient, step)
        rise = reached.value - start.value
        fell = rise <= _ENOUGH * length * first
        level = rise <= noise and slope <= -_FLAT * first
        if (fell or level) and slope >= _STEEP * first:
            return length, reached
        # Where the slope would be zero if it were linear, not too near to what is known.
        bend = (slope - low_slope) / (length - low)
        zero = low - low_slope / bend if bend > 0 else math.inf
        if fell and slope < 0:
            low, low_slope = length, slope
        else:
            high = length
        if low == 0 and not rise <= -_ENOUGH * length * first:
            length *= 0.1  # far too far, where the slope says little
        elif high < math.inf:
            margin = 0.1 * (high - low)
            zero = zero if math.isfinite(zero) else low
            length = min(max(zero, low + margin), high - margin)
        else:
            length = min(max(zero, 2 * low), 10 * low)
    return None


def _far(largest: float, then: float, iterations: int, tolerance: float) -> bool:
    """Whether the tolerance is further away, at the present pace, than a refresh is worth."""
    pace = math.log(then / largest) / iterations
    return not math.log(largest / max(tolerance, 1e-300)) <= _WORTH * pace


def _scale(first: Operator, pairs: list[_Pair]) -> float:
    """γ."""
    below = sum(_dot(pair.change, first(pair.change)) for pair in pairs)
    return sum(pair.product for pair in pairs) / below if below > 0 else 1.0


def _dot(one: Tensor, other: Tensor) -> float:
    return float(torch.dot(one.flatten(), other.flatten()))
