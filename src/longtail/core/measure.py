r"""Measuring the prior that logits carry, where no loss declares it.

If z carries c, then z + log h - log c is the exact posterior on validation data whose labels follow
h. So fit one offset b per class by maximum likelihood on validation labels (convex),

    min_b  mean_i  -log softmax(z_i + b)[y_i],      and read off      c = h · exp(-b).

How well the data determine b_k is their information on it, Σ_i p_ik (1 - p_ik) with p_i the fitted
probabilities: no standard error is below its inverse root. Where a class is told apart perfectly
nothing bounds b_k, and the fit only says where it stopped.

With P the fitted probabilities, the gradient is P's mean minus h and the Hessian
(diag(Σ_i p_i) − PᵀP)/N, whose null space is the constant that b is free of: a few Newton steps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import ArrayLike, RowsLike, as_array, as_numpy
from longtail.core.blocks import slices
from longtail.core.labels import check_labels
from longtail.core.minimise import UnsettledError, minimise
from longtail.core.prior import Prior
from longtail.core.probabilities import check_not_probs
from longtail.core.retarget import check_logits

_MAX_ITER = 1000
_LEAST_INFORMATION = 1e-2  # below it the standard error of a log-probability is above ten
_MOST_FOR_NEWTON = 1000  # classes; from there on the Hessian costs more than it saves
_TOLERANCE = 1e-10
_LONGEST = 5.0  # a step of an offset: further off the curvature is another
_IN_CACHE = 2**16

Floats = npt.NDArray[np.float64]


def measure_carried(
    logits: RowsLike, labels: ArrayLike, classes: Sequence[str] | None = None
) -> Prior:
    """The prior that best explains validation labels.

    Use data the model was not trained on: on its own training data a model looks better, and its
    prior closer to those data's, than it is. Every class must occur, and none be told apart
    perfectly; `classes` are their names, for errors.
    """
    array = as_array(logits)
    if len(array.shape) != 2:
        raise ValueError(f"logits must have shape (N, C), got {tuple(array.shape)}")
    check_logits(array, array.shape[1])
    rows = as_numpy(array)
    if not np.isfinite(rows).all():
        raise ValueError("logits must be finite to measure what they carry, got NaN or infinity")
    check_not_probs(array)
    indices = check_labels(labels, rows.shape[1])
    if len(indices) != len(rows):
        raise ValueError(f"got {len(rows)} rows of logits but {len(indices)} labels")
    counts = np.bincount(indices, minlength=rows.shape[1])
    if (counts == 0).any():
        absent = np.flatnonzero(counts == 0)
        raise ValueError(
            f"every class must occur in the validation labels, {len(absent)} of "
            f"{rows.shape[1]} do not (the first is {class_named(int(absent[0]), classes)}); "
            "what the logits carry for them cannot be measured"
        )
    labelled = Prior.of(counts)
    return Prior.from_log(labelled.log - _best_offset(rows, indices, labelled, classes))


def class_named(index: int, classes: Sequence[str] | None) -> str:
    """A class in an error: by its name where it has one, else as "class 9"."""
    return f"class {index}" if classes is None else f"{classes[index]!r}"


def _best_offset(
    logits: npt.NDArray[Any],
    labels: npt.NDArray[np.int64],
    labelled: Prior,
    classes: Sequence[str] | None,
) -> Floats:
    """One offset per class that maximises the likelihood, with mean zero."""
    likelihood = _Likelihood(logits, labels, labelled.probs)
    # As they are, or on one level: a probability that underflows has no curvature to step by.
    levelled = labelled.log - logits.mean(axis=0, dtype=np.float64)
    starts = (np.zeros_like(levelled), levelled - levelled.mean())
    start = min(starts, key=lambda offset: likelihood(offset)[0])
    if len(start) <= _MOST_FOR_NEWTON:
        best, gradient = _newton(likelihood, start)
    else:
        best, gradient = minimise(
            lambda offset: likelihood(offset)[:2], start, max_iter=_MAX_ITER, tolerance=_TOLERANCE
        )
    if not gradient < 1e-6:
        raise UnsettledError(
            f"the offsets did not settle in {_MAX_ITER} iterations: the likelihood still rises by "
            f"{gradient:.2g} for each unit of one; use more validation data, or smaller logits"
        )
    information = likelihood.information(best)
    if (information < _LEAST_INFORMATION).any():
        least = class_named(int(information.argmin()), classes)
        raise ValueError(
            f"these data do not determine the prior: {least} is told apart perfectly from all "
            "others, whatever the logits carry for it; use more, or harder, validation data"
        )
    return np.asarray(best - best.mean())


class _Likelihood:
    """mean_i −log softmax(z_i + b)[y_i] as a function of b, with its derivatives."""

    def __init__(
        self, logits: npt.NDArray[Any], labels: npt.NDArray[np.int64], shares: Floats
    ) -> None:
        self._logits, self._shares = logits, shares
        self._of_labels = float(
            np.take_along_axis(logits, labels[:, None], 1).sum(dtype=np.float64) / len(labels)
        )

    def __call__(self, offset: Floats, second: bool = False) -> tuple[float, Floats, Floats]:
        """Value, gradient and, if asked for, the Hessian (else an empty array)."""
        size = len(offset)
        total, mass = 0.0, np.zeros(size)
        squares = np.zeros((size, size) if second else (0, 0))
        for probs, log_sum in self._blocks(offset):
            total += float(log_sum.sum())
            mass += probs.sum(axis=0)
            if second:
                squares += probs.T @ probs
        count = len(self._logits)
        value = total / count - self._of_labels - float(offset @ self._shares)
        hessian = (np.diag(mass) - squares) / count if second else squares
        return value, mass / count - self._shares, hessian

    def information(self, offset: Floats) -> Floats:
        """Σ_i p_ik (1 − p_ik) of each class."""
        each = ((probs * (1 - probs)).sum(axis=0) for probs, _ in self._blocks(offset))
        return sum(each, np.zeros(len(offset)))

    def _blocks(self, offset: Floats) -> Iterator[tuple[Floats, Floats]]:
        for part in slices(len(self._logits), len(offset), _IN_CACHE):
            moved = self._logits[part] + offset
            top = moved.max(axis=1, keepdims=True)
            probs = np.exp(np.subtract(moved, top, out=moved), out=moved)
            sums = probs.sum(axis=1, keepdims=True)
            probs /= sums
            yield probs, top + np.log(sums)


def _newton(likelihood: Callable[..., Any], start: Floats) -> tuple[Floats, float]:
    """A minimum by Newton's steps, halved until they lower the value; the gradient there."""
    offset = start
    value, gradient, hessian = likelihood(offset, second=True)
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
            if moved[0] <= value - 1e-4 * size * slope or np.abs(moved[1]).max() <= _TOLERANCE:
                break
            size /= 2
        else:
            break
        offset, (value, gradient, hessian) = offset - size * step, moved
    return offset, float(np.abs(gradient).max())
