r"""The likeliest prior of unlabelled samples, every class on its own: where EM ends, in few steps.

With ℓ_i(y) = p(x_i|y) and r_i = Σ_y t_y ℓ_i(y), the prior t of greatest Σ_i w_i log r_i + Σ_y a_y
log t_y is sought, w_i what sample i counts and a_y samples more of class y. With W = Σw + Σa for
all of them, it is the t ≥ 0, which then sums to one, of greatest

    F(t) = Σ_i w_i log r_i + Σ_y a_y log t_y − W Σ_y t_y,
    F'_y = Σ_i w_i ℓ_i(y)/r_i + a_y/t_y − W,        −F'' = Lᵀ diag(w/r²) L + diag(a/t²).

At the top no F'_y is above zero, nor below where t_y > 0. The largest F'_y/W is the gap in these
conditions; F is concave, so no prior is likelier by more than that, in log-likelihood a sample.

Newton's step goes to the top of the parabola of these derivatives, as far as no class loses more
than nine tenths: about eight are enough, however alike classes are. Many problems are solved at
once, one a column, by products of matrices: −F'' is taken for the mean of all columns, scaled to
the diagonal that is a column's own. Where these matrices are too large, steps of EM are taken
together (Anderson, 1965): those combined whose changes of log t cancel best. A step that would
lower F is left for one of EM, which never does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.threads import in_threads, one_blas_thread

GAP = 1e-8
_MOST_FOR_NEWTON = 2**22  # numbers in the matrices of all problems; more cost more than they save
_MAX_STEPS = 1000
_LEAST_KEPT = 0.1  # of a class's share: further off F is no parabola
_RIDGE = 1e-10  # beside a diagonal of one: classes that nothing tells apart leave no curvature
_REMEMBERED = 8  # steps of EM
_LEAST = 1e-100  # a share of zero would be one for ever
_ROUNDING = 1e-12  # of F, for each sample
_LARGE, _SHARES = 2**18, 8  # numbers that pay for threads, and how many parts these get


class Climb(NamedTuple):
    """Where a solver stopped."""

    priors: Floats  # of shape (C, problems); each column sums to one
    iterations: int
    converged: bool  # whether all problems are solved up to the tolerance


@one_blas_thread()
def solve_free(
    likelihood: Floats,
    weights: Floats,
    pseudo_counts: Floats | np.float64,
    start: Floats,
    tolerance: float = GAP,
) -> Climb:
    """The likeliest priors, each up to a gap of `tolerance` in the conditions of the optimum.

    Shapes: likelihood (N, C), weights (N, problems), start (C, problems), without zeros;
    pseudo_counts any that broadcast to that of the start.
    """
    more = np.broadcast_to(pseudo_counts, start.shape)
    by_newton, steps = start.size * len(start) <= _MOST_FOR_NEWTON, _Steps()
    priors, left = start.copy(), np.arange(start.shape[1])
    here = _look(likelihood, weights, more, start, by_newton)
    for iteration in range(1, _MAX_STEPS + 1):
        solved = here.gaps <= tolerance
        priors[:, left] = here.priors
        if solved.all():
            return Climb(priors, iteration, converged=True)
        if by_newton and solved.any():  # the others go on without them
            left, weights, more = left[~solved], weights[:, ~solved], more[:, ~solved]
            here = here.without(solved)
        moved = _newton(here) if by_newton else steps.combined(here)
        there = _look(likelihood, weights, more, moved, by_newton)
        fell = there.value < here.value - _ROUNDING * here.total
        if fell.any():
            moved = np.where(fell, here.by_em, moved)
            there = _look(likelihood, weights, more, moved, by_newton)
        here = there
    return Climb(priors, _MAX_STEPS, converged=False)


class _Point(NamedTuple):
    """F and its derivatives at some priors: of shape (C, problems), or one number a problem."""

    priors: Floats
    more: Floats  # a
    total: Floats  # W
    value: Floats  # F + W
    first: Floats  # F' + W
    diagonal: Floats  # of Lᵀ diag(w/r²) L
    curvature: Floats  # that matrix itself, the mean of all problems: (C, C)

    @property
    def gaps(self) -> Floats:
        return np.asarray((self.first / self.total).max(axis=0) - 1)

    @property
    def by_em(self) -> Floats:
        return np.asarray(np.maximum(self.priors * self.first / self.total, _LEAST))

    def without(self, solved: np.typing.NDArray[np.bool_]) -> _Point:
        parts = [part[..., ~solved] for part in self[:6]]
        return _Point._make([*parts, self.curvature])


def _look(
    likelihood: Floats, weights: Floats, more: Floats, priors: Floats, second: bool
) -> _Point:
    size, total = likelihood.size, weights.sum(axis=0) + more.sum(axis=0)
    share = -(-len(likelihood) // _SHARES) if size > _LARGE else max(1, len(likelihood))
    parts = list(slices(len(likelihood), 1, share))
    sums = in_threads(
        lambda at: _part_sums(likelihood[at], weights[at], priors, second=second), parts
    )
    value, first, diagonal, curvature = (sum(each) for each in zip(*sums, strict=True))
    value, first = value + (more * np.log(priors)).sum(axis=0), first + more / priors
    return _Point(priors, more, total, value, first, diagonal, curvature)


def _part_sums(
    likelihood: Floats, weights: Floats, priors: Floats, *, second: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Of some samples what each adds to value, first, diagonal and curvature."""
    size = len(priors)
    value, first, diagonal = (
        np.zeros(priors.shape[1]),
        np.zeros(priors.shape),
        np.zeros(priors.shape),
    )
    curvature = np.zeros((size, size) if second else (0, 0))
    for part in slices(len(likelihood), size, IN_CACHE):
        rows, times = likelihood[part], weights[part]
        mixed = rows @ priors
        value += np.einsum("ik,ik->k", times, np.log(mixed))
        ratio = times / mixed
        first += rows.T @ ratio
        if second:
            ratio /= mixed
            diagonal += np.square(rows).T @ ratio
            scaled = rows * np.sqrt(ratio.mean(axis=1, keepdims=True))
            curvature += scaled.T @ scaled
    return value, first, diagonal, curvature


def _newton(here: _Point) -> Floats:
    """Newton's steps, of every problem."""
    size, mean = len(here.priors), np.diagonal(here.curvature)[:, None]
    scales = np.sqrt(here.diagonal / np.where(mean > 0, mean, 1.0)).T
    own, uphill = here.more / np.square(here.priors), here.first - here.total
    moved = np.empty_like(here.priors)
    for some in slices(len(scales), size * size, IN_CACHE):
        curved = here.curvature * scales[some, :, None] * scales[some, None, :]
        curved[:, np.arange(size), np.arange(size)] += own.T[some]
        priors = here.priors.T[some]
        moved.T[some] = priors + _highest(curved, uphill.T[some], (_LEAST_KEPT - 1) * priors)
    return np.asarray(moved / moved.sum(axis=0))


def _highest(curved: Floats, uphill: Floats, least: Floats) -> Floats:
    """The p ≥ least of greatest uphill·p − p·curved·p/2, for each of some problems, one a row."""
    scale = np.sqrt(np.diagonal(curved, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    level = curved / (scale[:, :, None] * scale[:, None, :]) + _RIDGE * np.eye(scale.shape[1])
    slope, bound = uphill / scale, least * scale
    step = np.linalg.solve(level, slope[..., None])[..., 0]
    for beyond in np.flatnonzero((step < bound).any(axis=1)):
        step[beyond] = _held(level[beyond], slope[beyond], bound[beyond])
    return np.asarray(step / scale)


def _held(level: Floats, slope: Floats, bound: Floats) -> Floats:
    """By what holds classes at the bound, of which there are few: level·p = slope + held."""
    from scipy.optimize import nnls

    root = np.linalg.cholesky(level)
    inverse = np.linalg.inv(root)
    held = nnls(inverse, root.T @ bound - inverse @ slope, maxiter=100 * len(bound))[0]
    return np.asarray(np.maximum(inverse.T @ (inverse @ (slope + held)), bound))


class _Steps:
    """The last steps of EM, in log t, for all problems together."""

    def __init__(self) -> None:
        self._starts: list[Floats] = []
        self._steps: list[Floats] = []

    def combined(self, here: _Point) -> Floats:
        """The next priors."""
        start, end = np.log(here.priors), here.by_em
        step = np.log(end) - start
        self._starts = [*self._starts, start][-_REMEMBERED:]
        self._steps = [*self._steps, step][-_REMEMBERED:]
        moved = start + step
        if len(self._steps) > 1:
            changes, turns = np.diff(self._starts, axis=0), np.diff(self._steps, axis=0)
            squares = np.einsum("ack,bck,ck->kab", turns, turns, end, optimize=True)
            along = np.einsum("ack,ck,ck->ka", turns, step, end, optimize=True)
            ridge = _RIDGE * np.trace(squares, axis1=1, axis2=2) + _LEAST
            squares += ridge[:, None, None] * np.eye(len(turns))
            shares = np.linalg.solve(squares, along[..., None])[..., 0]
            moved -= np.einsum("ack,ka->ck", changes + turns, shares)
        moved = np.exp(moved - moved.max(axis=0))
        return np.asarray(np.maximum(moved / moved.sum(axis=0), _LEAST))
