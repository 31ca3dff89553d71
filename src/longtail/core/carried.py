r"""What logits carry: by labels, or by a prior that unlabelled samples are known to follow.

Labels matter to the fit of `measure` only through their frequencies h. So unlabelled samples of a
known prior h do as well (marginal matching): the offsets b for which the mean m of the softmax rows
p_i of z_i + b is h, unique up to a constant, and the logits carry c = h · exp(−b).

But m − h is not the score of a likelihood. With H = diag(m) − mean_i p_i p_iᵀ, which is how m
moves with b, it varies by V/N, where V = diag(m) − mmᵀ − H is the covariance of the p_i: most where
a model is sure, and H next to nothing. A pseudo-count would cancel in m = h; a ridge on b does not.
If b is N(0, s²), and classes count alike, in products weighted by 1/h,

    |m − h|² at b = 0    is on average    s²·tr(H²) + tr(V)/N,                                  (1)

which gives s² up to a standard error e. It is believed to be of the order of one, exponentially
distributed, so its best value is e² below that estimate: near zero where samples tell nothing.
The ridge is tr(V) / (tr(H)·N·s²), the best one as far as V is a multiple of H. If b then turns out
larger than s, s is raised. With A = (H + ridge)⁻¹ and the upper end of s², the covariance of what b
is off by is

    ridge²·s²·A² + A·V·A / N.                                                                   (2)

Beyond 1,000 classes only the diagonals of H and V are looked at.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.core.arrays import ArrayLike, Floats, Numbers, RowsLike, as_array, as_numpy
from longtail.core.measure import (
    MOST_FOR_NEWTON,
    NegativeLogLikelihood,
    best_offset,
    class_named,
    lowest_offset,
    start_offset,
)
from longtail.core.minimise import UnsettledError
from longtail.core.prior import Prior, PriorLike, check_same_classes, full_prior
from longtail.core.probabilities import check_not_probs
from longtail.core.score_checks import check_rows, labels_of

_NEAR = 1.1  # how much larger than s² the square of b may be
_FAR = 5.0  # standard errors
_LEAST = 1e-4  # s², of offsets that make no difference


def measure_carried(
    logits: RowsLike,
    labels: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
    *,
    prior: PriorLike | None = None,
) -> Prior:
    """The prior that logits carry, by labels, or by the prior that unlabelled samples follow.

    Use data the model was not trained on: on its own training data a model looks better, and its
    prior closer to those data's, than it is. By labels every class must occur, and none be told
    apart perfectly. Of unlabelled samples it takes thousands: what few of them say stays near the
    prior itself. `posthoc.MarginalMatching` has intervals. `classes` are names, for errors.

    >>> logits = [[3.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]] * 500
    >>> measure_carried(logits, [0, 0, 1, 1] * 500)
    Prior([0.731, 0.269])
    >>> measure_carried(logits, prior=[50, 50])
    Prior([0.731, 0.269])
    """
    if (labels is None) == (prior is None):
        raise ValueError(
            "what logits carry is measured by the labels of their samples, or by the prior that "
            "unlabelled samples follow: give either labels or prior, not "
            f"{'neither' if labels is None else 'both'}"
        )
    array = as_array(logits)
    check_rows(array, "logits")
    if classes is not None and len(classes) != array.shape[1]:
        raise ValueError(
            f"classes must name each of the {array.shape[1]} classes of the logits once, in the "
            f"order of their columns, got {len(classes)} names"
        )
    check_not_probs(array)
    rows = as_numpy(array)
    if prior is not None:
        return matched_offsets(rows, prior).carried
    assert labels is not None
    _check_finite(rows)
    indices = as_numpy(labels_of(array, labels))
    counts = np.bincount(indices, minlength=rows.shape[1])
    if (counts == 0).any():
        absent = np.flatnonzero(counts == 0)
        raise ValueError(
            f"every class must occur in the validation labels, {len(absent)} of "
            f"{rows.shape[1]} do not (the first is {class_named(int(absent[0]), classes)}); "
            "what the logits carry for them cannot be measured"
        )
    labelled = Prior.of(counts)
    return Prior.from_log(labelled.log - best_offset(rows, indices, labelled, classes))


class MatchedOffsets(NamedTuple):
    """What to add to logits so that they carry the prior that their samples follow."""

    offset: Floats  # b, one number a class, with mean zero
    covariance: Floats  # of how far each may be off; beyond 1,000 classes its diagonal alone
    prior: Prior

    @property
    def carried(self) -> Prior:
        """What the logits carry."""
        return Prior.from_log(self.prior.log - self.offset)

    def deviations(self, shares: Floats) -> Floats:
        """Standard errors of the offsets less their mean by these shares.

        By those of a prior that is made of the offsets they are those of its logarithms.
        """
        if self.covariance.ndim == 1:
            own, along = self.covariance, self.covariance * shares
        else:
            own, along = np.diagonal(self.covariance), self.covariance @ shares
        return np.asarray(np.sqrt(np.maximum(own - 2 * along + shares @ along, 0.0)))


def matched_offsets(logits: Numbers, prior: PriorLike) -> MatchedOffsets:
    """The offsets of unlabelled samples that follow the prior; of few samples they are near 0."""
    followed = full_prior(prior, "known")
    check_same_classes(logits.shape[1], followed, "the logits have", "the known prior")
    if (count := len(logits)) < 2:
        raise ValueError(
            f"unlabelled samples tell what logits carry by how they vary, so by two or more; got "
            f"{count}"
        )
    _check_finite(logits)
    plain = NegativeLogLikelihood(logits, followed, len(followed))
    offset = np.zeros(len(followed))
    marginals = _Marginals.at(plain, offset, followed)
    if marginals.excess[0] > _FAR * marginals.excess[1]:
        # The logits carry something quite else, from where (1) may say nothing.
        offset = start_offset(plain, followed)
        marginals = _Marginals.at(plain, offset, followed)
    low, high = marginals.offset_variances()
    ratio = marginals.ratio() / count
    while True:
        low = max(low, float(np.square(offset).mean()))
        ridged = NegativeLogLikelihood(logits, followed, len(followed), ratio / low)
        offset = lowest_offset(ridged, offset)
        if np.square(offset).mean() <= _NEAR * low:
            break
    at_best = _Marginals.at(plain, offset, followed)
    covariance = at_best.covariance(ratio / low, max(low, high))
    return MatchedOffsets(offset, covariance, followed)


class _Marginals(NamedTuple):
    """How probabilities and their mean vary; H and V are matrices, or their diagonals alone."""

    residual: Floats  # m − h
    curvature: Floats  # H
    variance: Floats  # V
    prior: Floats  # h
    samples: int

    @classmethod
    def at(cls, plain: NegativeLogLikelihood, offset: Floats, prior: Prior) -> "_Marginals":
        """Those of the logits with an offset."""
        count, is_full = len(plain.logits), len(offset) <= MOST_FOR_NEWTON
        _, residual, _, curvature = plain(offset, second=is_full)
        mean = residual + prior.probs
        if is_full:
            product = np.diag(mean) - np.outer(mean, mean)
        else:
            product, curvature = mean * (1 - mean), plain.information(offset) / count
        variance = (product - curvature) * count / (count - 1)
        return cls(residual, curvature, variance, prior.probs, count)

    def ratio(self) -> float:
        """Of tr(V) to tr(H)."""
        return max(self._trace(self.variance), 0.0) / self._trace(self.curvature)

    @property
    def excess(self) -> tuple[float, float]:
        """By how much |m − h|² exceeds tr(V)/N, and the standard error of that."""
        relative = self.variance / self.prior
        error = float(np.sqrt(2 * max((relative * relative.T).sum(), 0.0))) / self.samples
        square = float((self.residual**2 / self.prior).sum())
        return square - self._trace(self.variance) / self.samples, error

    def offset_variances(self) -> tuple[float, float]:
        """The s² of (1), and its upper end."""
        if not self._trace(self.curvature) > np.finfo(np.float64).eps:
            raise UnsettledError(
                "these data do not determine the prior: the model is sure of every sample, "
                "whatever its logits carry; use harder samples"
            )
        moved = float((self.curvature.T**2 / self.prior).sum())
        estimate, error = (each / moved for each in self.excess)
        best = max(estimate - error**2, _LEAST)
        return best, best + min(error, 1.0)

    def covariance(self, ridge: float, variance: float) -> Floats:
        """(2), or its diagonal."""
        noise = self.variance / self.samples
        if noise.ndim == 1:
            return np.asarray((ridge**2 * variance + noise) / (self.curvature + ridge) ** 2)
        size = len(noise)  # a curvature of one in the constant direction, in which nothing changes
        inverse = np.linalg.inv(self.curvature + ridge * np.eye(size) + 1 / size)
        return np.asarray((ridge**2 * variance * inverse + inverse @ noise) @ inverse)

    def _trace(self, values: Floats) -> float:
        """Classes counting alike."""
        own = values if values.ndim == 1 else np.diagonal(values)
        return float((own / self.prior).sum())


def _check_finite(rows: Numbers) -> None:
    if not np.isfinite(rows).all():
        raise ValueError("logits must be finite to measure what they carry, got -inf; floor it")
