r"""Measuring the prior that logits carry by labels, where no loss declares it.

If z carries c, then z + log h - log c is the exact posterior on validation data whose labels follow
h. So fit one offset b per class by maximum likelihood on validation labels (convex),

    min_b  mean_i  -log softmax(z_i + b)[y_i],      and read off      c = h · exp(-b).

How well the data determine b_k is their information on it, Σ_i p_ik (1 - p_ik) with p_i the fitted
probabilities: no standard error is below its inverse root. Where a class is told apart perfectly
nothing bounds b_k, and the fit only says where it stopped.

With P the fitted probabilities, the gradient is P's mean minus h and the Hessian
(diag(Σ_i p_i) − PᵀP)/N, whose null space is the constant that b is free of: a few Newton steps.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import IN_CACHE, blocks
from longtail.core.minimise import UnsettledError, minimise
from longtail.core.prior import Prior
from longtail.core.threads import one_blas_thread

_MAX_ITER = 1000
_LEAST_INFORMATION = 1e-2  # below it the standard error of a log-probability is above ten
MOST_FOR_NEWTON = 1000  # classes; from there on the Hessian costs more than it saves
_TOLERANCE = 1e-10
_LONGEST = 5.0  # a step of an offset: further off the curvature is another


def best_offset(
    logits: Numbers, labels: Indices, labelled: Prior, classes: Sequence[str] | None
) -> Floats:
    """One offset per class that maximises the likelihood of labels that follow `labelled`."""
    likelihood = NegativeLogLikelihood(logits, labels, len(labelled))
    best = lowest_offset(likelihood, start_offset(likelihood, labelled))
    information = likelihood.information(best)
    if (information < _LEAST_INFORMATION).any():
        least = class_named(int(information.argmin()), classes)
        raise UnsettledError(
            f"these data do not determine the prior: {least} is told apart perfectly from all "
            "others, whatever the logits carry for it; use more, or harder, validation data"
        )
    return best


def class_named(index: int, classes: Sequence[str] | None) -> str:
    """A class in an error: by its name where it has one, else as "class 9"."""
    return f"class {index}" if classes is None else f"{classes[index]!r}"


def start_offset(likelihood: "NegativeLogLikelihood", labelled: Prior) -> Floats:
    """Zeros, or what puts the logits on one level if that is better, with mean zero.

    A probability that underflows has no curvature to step by.
    """
    levelled = labelled.log - likelihood.logits.mean(axis=0, dtype=np.float64)
    starts = (np.zeros_like(levelled), levelled - levelled.mean())
    return min(starts, key=lambda offset: likelihood(offset).value)


def lowest_offset(likelihood: "NegativeLogLikelihood", start: Floats) -> Floats:
    """The offsets of the lowest value, with mean zero, or an UnsettledError."""
    if len(start) <= MOST_FOR_NEWTON:
        best, gradient = _newton(likelihood, start)
    else:
        best, gradient = minimise(
            lambda offset: likelihood(offset)[:2], start, max_iter=_MAX_ITER, tolerance=_TOLERANCE
        )
    if not gradient < 1e-6:
        raise UnsettledError(
            f"the offsets did not settle in {_MAX_ITER} iterations: the likelihood still rises by "
            f"{gradient:.2g} for each unit of one; use more data, or smaller logits"
        )
    return np.asarray(best - best.mean())


class Derivatives(NamedTuple):
    """A value, and its derivatives by each class's bias and scale; empty where not asked for."""

    value: float
    by_bias: Floats
    by_scale: Floats
    by_bias_twice: Floats


class NegativeLogLikelihood:
    """mean_i −log softmax(s·z_i + b)[y_i] as a function of b and s, one number a class each.

    Instead of labels there may be a prior, as the soft label of every sample; and a ridge,
    ½·ridge·‖b‖² more.
    """

    def __init__(
        self, logits: Numbers, labels: Indices | Prior, num_classes: int, ridge: float = 0.0
    ) -> None:
        self.logits, self._ridge = logits, ridge
        self._counts: Floats
        if isinstance(labels, Prior):
            self._counts = len(logits) * labels.probs
            self._own = labels.probs * logits.sum(axis=0, dtype=np.float64)
        else:
            self._counts = np.bincount(labels, minlength=num_classes).astype(np.float64)
            own = np.take_along_axis(logits, labels[:, None], 1)[:, 0]
            self._own = np.bincount(labels, own.astype(np.float64), num_classes)
        self._any_ruled_out = bool(np.isneginf(logits.min(initial=np.inf)))

    @one_blas_thread()
    def __call__(
        self, bias: Floats, scale: Floats | None = None, second: bool = False
    ) -> Derivatives:
        """The value there; by the scale if there is one, and twice by the bias if asked for."""
        size, value = len(bias), 0.0
        by_bias, by_scale = np.zeros(size), np.zeros(size if scale is not None else 0)
        squares = np.zeros((size, size) if second else (0, 0))
        for rows, probs, log_sums in self._blocks(bias, scale):
            value += float(log_sums.sum())
            by_bias += probs.sum(axis=0)
            if second:
                squares += probs.T @ probs
            if scale is not None:
                # What is ruled out has probability zero, but 0 · -inf would be no number.
                finite = np.where(np.isneginf(rows), 0.0, rows) if self._any_ruled_out else rows
                by_scale += np.einsum("ij,ij->j", probs, finite)
        seen, count = self._counts > 0, len(self.logits)
        value -= float(self._own.sum() if scale is None else scale @ self._own)
        value -= float(bias[seen] @ self._counts[seen])
        twice = (np.diag(by_bias) - squares if second else squares) / count
        by_scale = by_scale if scale is None else by_scale - self._own
        by_bias = (by_bias - self._counts) / count
        if self._ridge:
            value += count * self._ridge / 2 * float(bias @ bias)
            by_bias = by_bias + self._ridge * bias
            twice[np.diag_indices(len(twice))] += self._ridge
        return Derivatives(value / count, by_bias, by_scale / count, twice)

    def information(self, bias: Floats) -> Floats:
        """Σ_i p_ik (1 − p_ik) of each class."""
        each = ((probs * (1 - probs)).sum(axis=0) for _, probs, _ in self._blocks(bias, None))
        return sum(each, np.zeros(len(bias)))

    def _blocks(
        self, bias: Floats, scale: Floats | None
    ) -> Iterator[tuple[Numbers, Floats, Floats]]:
        """Logits, their probabilities, and the logarithms of what those were divided by."""
        for (rows,) in blocks(self.logits, numbers=IN_CACHE):
            moved = rows + bias if scale is None else rows * scale + bias
            top = moved.max(axis=1, keepdims=True)
            probs = np.exp(np.subtract(moved, top, out=moved), out=moved)
            sums = probs.sum(axis=1, keepdims=True)
            probs /= sums
            yield rows, probs, top + np.log(sums)


def _newton(likelihood: NegativeLogLikelihood, start: Floats) -> tuple[Floats, float]:
    """A minimum by Newton's steps, halved until they lower the value; the gradient there."""
    offset = start
    value, gradient, _, hessian = likelihood(offset, second=True)
    for _ in range(_MAX_ITER):
        if np.abs(gradient).max() <= _TOLERANCE:
            break
        # The constant direction, in which nothing changes, gets a curvature of one.
        ridge = 1e-12 * np.trace(hessian) / len(offset)
        curved = hessian + 1 / len(offset) + ridge * np.eye(len(offset))
        step = np.linalg.solve(curved, gradient)
        slope, size = float(gradient @ step), min(1.0, _LONGEST / np.abs(step).max())
        while size > 1e-9:
            moved = likelihood(offset - size * step, second=True)
            settles = np.abs(moved.by_bias).max() <= _TOLERANCE
            if settles or moved.value <= value - 1e-4 * size * slope:
                break
            size /= 2
        else:
            break
        offset, (value, gradient, _, hessian) = offset - size * step, moved
    return offset, float(np.abs(gradient).max())
