r"""Accuracy as a function of τ, for every τ at once.

A sample is right on one interval of τ (`intervals`), so accuracy under the target t,

    A(τ) = Σ_y t(y) · recall_y(τ)  /  Σ_y t(y)              over the classes that have samples,

is a step function: one pass over the logits, one sort of the ends and a cumulative sum give all of
it, and its true maximum. Balanced accuracy is the case of uniform t.

Ends are computed in float64. Logits of lower precision are adjusted in their own, where a sample
within a rounding of its end may fall to the other side. So the best τ is tried on the logits, and
of a few best pieces the first is taken that keeps what it promises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import Array, ArrayLike, as_numpy, to_kind
from longtail.core.labels import check_labels
from longtail.core.numbers import check_per_class
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.probabilities import check_not_probs
from longtail.core.retarget import prior_offset
from longtail.posthoc.tau.intervals import Intervals
from longtail.posthoc.tau.paths import Scale, Shift, TauPath, predict
from longtail.posthoc.tau.steps import Steps, TauBootstrap, best_pieces, draw_curves
from longtail.posthoc.validation import Floats, Indices, Rows, Weighted, weights_to

_TRIES = 5  # so many pieces: in float32 one in ten or so does not keep its promise


@dataclass(frozen=True, eq=False, repr=False)
class TauCurve:
    """Accuracy for every τ, a step function.

    Value k of `accuracy` and of `balanced_accuracy` holds for taus[k-1] ≤ τ < taus[k], the first
    one from minus infinity and the last one to infinity, so there is one value more than ends. Ties
    are broken as argmax does, by the lowest index. An end that a tie keeps out of its interval is
    moved to the next float64 number, so `at` is right at the ends too.

    Attributes:
        taus: The ends of the pieces, ascending.
        accuracy: Accuracy under the target, on each piece.
        balanced_accuracy: The mean recall, on each piece; the same if the target is uniform.
        best_tau: Where accuracy under the target is highest: 1 if that lies in `best_interval`,
            else its middle, or if it has only one end the point that lies one inside.
        best_interval: The piece it lies in; of equal ones the nearest to 1.
        best_accuracy: Under the target, of these logits adjusted by `best_tau` in their own
            precision.
        target: The prior under which accuracy is meant.
        intervals: The τ from which on and up to which each sample is right.
        labels: The true classes.
        weights: What each sample counts under the target.
        times: As how many samples each counts.
    """

    taus: Array
    accuracy: Array
    balanced_accuracy: Array
    best_tau: float
    best_interval: tuple[float, float]
    best_accuracy: float
    target: Prior
    intervals: Intervals
    labels: Indices
    weights: Floats
    times: Floats

    def at(self, tau: float) -> float:
        """Accuracy under the target at τ."""
        piece = np.searchsorted(as_numpy(self.taus), tau, side="right")
        return float(as_numpy(self.accuracy)[piece])

    def recalls(self, tau: float) -> Array:
        """The recall of every class at τ; NaN for a class without samples."""
        classes, right = self.target.num_classes, self.labels[self.intervals.contain(tau)]
        counts = np.bincount(self.labels, minlength=classes)
        hits = np.bincount(right, minlength=classes)
        recalls = np.divide(hits, counts, out=np.full(classes, np.nan), where=counts > 0)
        in_kind: Array = to_kind(recalls, self.taus)
        return in_kind

    def bootstrap(self, replicates: int = 200, seed: int = 0) -> TauBootstrap:
        """How far the curve and its best τ move if samples of each class are drawn again."""
        steps, counted = Steps.of(self.intervals), (self.labels, self.weights, self.times)
        drawn = draw_curves(steps, *counted, replicates, seed)
        return TauBootstrap(*(to_kind(values, self.taus) for values in drawn))

    def __repr__(self) -> str:
        low, high = self.best_interval
        return (
            f"TauCurve({len(self.labels)} samples, {len(self.taus)} ends, best_tau="
            f"{self.best_tau:.4g} in [{low:.4g}, {high:.4g}), accuracy {self.best_accuracy:.4g})"
        )


def tau_curve(
    logits: Array, labels: ArrayLike, prior: PriorLike, target: PriorLike | None = None
) -> TauCurve:
    """Accuracy of f + τ·(log target − log prior) for every τ: the curve behind the choice of τ.

    Args:
        logits: Shape (N, C), of a model that carries `prior`.
        labels: True classes.
        prior: The training prior π: a Prior or class counts.
        target: The prior that labels follow where the model is used, uniform by default: then
            these are f − τ·log π (LA eq. 9), and accuracy is balanced accuracy.

    >>> import numpy as np
    >>> logits = np.array([[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]])
    >>> curve = tau_curve(logits, labels=[0, 0, 0, 1, 1], prior=[90, 10])
    >>> curve.best_tau, curve.best_accuracy, curve.at(0.0)
    (0.387, 0.833, 0.5)
    """
    rows, true = _check(logits, labels)
    source = full_prior(prior, "training")
    check_same_classes(rows.shape[1], source, "the logits have", "the training prior")
    goal = Prior.uniform(source.num_classes) if target is None else Prior.of(target)
    path = Shift(prior_offset(source, goal))
    return curve_along(path, Weighted.under(goal, rows, true), goal, logits)


def weight_norm_curve(
    logits: Array, labels: ArrayLike, nu: ArrayLike, target: PriorLike | None = None
) -> TauCurve:
    """Accuracy of f/ν^τ for every τ, as `tau_curve`.

    Args:
        logits: Shape (N, C).
        labels: True classes.
        nu: One positive number a class: the norm of its weight, or the training prior.
        target: The prior under which accuracy is meant, uniform by default. It changes what is
            counted, not what is predicted.

    >>> import numpy as np
    >>> logits = np.array([[3.0, 1.0], [2.0, 0.5], [1.0, 0.8], [1.2, 1.0], [2.0, 1.9]])
    >>> curve = weight_norm_curve(logits, labels=[0, 0, 0, 1, 1], nu=[2.0, 1.0])
    >>> curve.best_tau, curve.best_accuracy
    (0.292, 1.0)
    """
    rows, true = _check(logits, labels)
    log_nu = np.log(check_per_class(nu, rows.shape[1], "nu"))
    goal = Prior.uniform(rows.shape[1]) if target is None else Prior.of(target)
    check_same_classes(rows.shape[1], goal, "the logits have", "the target prior")
    return curve_along(Scale(log_nu), Weighted.under(goal, rows, true), goal, logits)


def curve_along(
    path: TauPath, samples: Weighted, target: Prior, example: object = None
) -> TauCurve:
    """The curve of samples weighted to the target, with arrays of the example's kind."""
    right = path.intervals(samples.logits, samples.labels)
    steps = Steps.of(right)
    accuracy = steps.values(samples.weights)
    uniform = weights_to(Prior.uniform(target.num_classes), samples.labels, samples.shares)
    tried = []
    for piece in best_pieces(steps.taus, accuracy, _TRIES):
        hits = predict(path, samples.logits, piece.inner) == samples.labels
        tried.append((samples.mean(hits), piece))
        if tried[-1][0] > piece.value - 1e-9:
            break
    best_accuracy, best = max(tried, key=lambda pair: pair[0])
    return TauCurve(
        taus=to_kind(steps.taus, example),
        accuracy=to_kind(accuracy, example),
        balanced_accuracy=to_kind(steps.values(uniform), example),
        best_tau=best.inner,
        best_interval=(best.low, best.high),
        best_accuracy=best_accuracy,
        target=target,
        intervals=right,
        labels=samples.labels,
        weights=samples.weights,
        times=samples.times,
    )


def _check(logits: Array, labels: ArrayLike) -> tuple[Rows, Indices]:
    """The samples, or a ValueError."""
    rows = as_numpy(logits)
    if rows.ndim != 2 or rows.dtype.kind != "f" or not _all_have_a_highest(rows):
        Scores(rows)  # which says what is wrong with them
    check_not_probs(rows)
    true = check_labels(labels, rows.shape[1])
    if not len(rows) or len(rows) != len(true):
        raise ValueError(
            f"a curve needs samples and their labels, got {len(rows)} rows of logits and "
            f"{len(true)} labels"
        )
    return rows, true


def _all_have_a_highest(rows: Rows) -> bool:
    """No NaN, no +inf and one finite logit in every row."""
    return rows.size > 0 and bool(np.isfinite(rows.max(axis=1)).all())
