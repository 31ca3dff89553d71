r"""The same samples before and after: both sets of metrics, and how sure the difference is.

A sample that turns right adds one, one that turns wrong takes one away. With d_i in {-1, 0, 1}

    gain = Σ_y w_y Σ_{i: y_i = y} d_i,        var(gain) = Σ_y w_y² · n_y · var_y(d) + 2/n²,

which is narrower than two separate intervals suggest, since most samples do not change. var_y leans
on the other classes as far as class y has few samples (`stats.within_classes`), and on no less than
the share of samples that changed, r = Σ_y w_y · changed_y. No change seen is not no change to come:
2/n² is as if of the n samples that these are worth (Kish) one more had turned right and one wrong
(Agresti and Min, 2005).

Few changes say little about how many there will be. A number of them varies by itself, so that

    var(var) = Σ_y w_y⁴ · n_y · var_y(d) + 2/n⁴,        f = 2 var(gain)² / var(var),

are the degrees of freedom of Student's t (Satterthwaite). Without a change f = 4, and the interval
reaches to 3.9/n, as the exact one of none in n does (3.7/n). Only where the scores after are those
before by a factor, as with a temperature, no sample can change: then the interval is the point 0.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from math import isfinite
from typing import Any

import numpy as np

from longtail.core import PriorLike, Scores
from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, RowsLike, as_numpy
from longtail.core.blocks import IN_CACHE, blocks, slices
from longtail.core.labels import check_labels
from longtail.core.prior import Prior
from longtail.metrics.accumulator import Accumulator
from longtail.metrics.chance import Sanity, sanity
from longtail.metrics.samples import (
    LabelsLike,
    Logits,
    RightAnswers,
    labelled,
    predicted,
    sums_by,
)
from longtail.metrics.sums import Groups, check_block
from longtail.stats import Interval, class_variances, student_reach

_SCORES = ("nll", "brier")
_MORE = 2  # changes
# Of a sample that outweighs all others it would be next to none, and t endless.
_LEAST_FREEDOM = 3.0


class Difference:
    """Sums over the same samples before and after: `add` blocks of both, merge with `+`, read.

    Arguments as for `Accumulator`, of which `before` and `after` are two; `changed` is how many
    samples of each class turned right or wrong, and `can_differ` whether any logits are not those
    before by a factor.

    >>> both = Difference(2)
    >>> both.add([[2.0, 0.0]] * 4, [[2.0, 0.0], [0.0, 2.0]] * 2, [0, 1, 0, 1])
    >>> both.gains()["balanced_accuracy"].value
    0.5
    """

    def __init__(
        self,
        num_classes: int,
        target: PriorLike | None = None,
        counts: ArrayLike | None = None,
        *,
        groups: Groups | None = None,
        label_counts: ArrayLike | None = None,
    ) -> None:
        self.before, self.after = (
            Accumulator(num_classes, target, counts, groups=groups, label_counts=label_counts)
            for _ in range(2)
        )
        self.changed = np.zeros(num_classes)
        # Over the samples of each class, by how much the score fell, and the squares of that.
        self._falls = {name: np.zeros((2, num_classes)) for name in _SCORES}
        self.can_differ = False

    @classmethod
    def of(
        cls,
        before: Scores[Any],
        after: Scores[Any],
        target: PriorLike | None = None,
        counts: ArrayLike | None = None,
        groups: Groups | None = None,
    ) -> Difference:
        """The sums of labelled scores of the same samples."""
        labels, classes = as_numpy(labelled(before).labels), before.num_classes
        seen = np.bincount(labels, minlength=classes)
        both = cls(classes, target, counts, groups=groups, label_counts=seen)
        for was, now, truth in blocks(before.logits, after.logits, labels):
            both.add(was, now, truth, _are_logits=True)
        return both

    def add(
        self, before: RowsLike, after: RowsLike, labels: ArrayLike, *, _are_logits: bool = False
    ) -> None:
        """Count in a block of logits before and after, of the same samples."""
        classes = len(self.changed)
        old, truth = check_block(before, labels, classes, _are_logits)
        new, _ = check_block(after, truth, classes, _are_logits)
        was, now = self.before._add_all(old, truth), self.after._add_all(new, truth)
        self.changed += np.bincount(truth[was.right != now.right], minlength=classes)
        for name, sums in self._falls.items():
            with np.errstate(invalid="ignore", over="ignore"):  # infinite before and after
                fall = getattr(was, name) - getattr(now, name)
                sums += np.stack([sums_by(truth, terms, classes) for terms in (fall, fall**2)])
        self.can_differ = self.can_differ or not _is_scaled(old, new)

    def __add__(self, other: Difference) -> Difference:
        merged = copy(self)
        merged.before, merged.after = self.before + other.before, self.after + other.after
        merged.changed = self.changed + other.changed
        merged._falls = {name: self._falls[name] + other._falls[name] for name in _SCORES}
        merged.can_differ = self.can_differ or other.can_differ
        return merged

    def metrics(self) -> dict[str, tuple[Interval, Interval]]:
        """Every metric before and after."""
        after = self.after.metrics()
        return {name: (was, after[name]) for name, was in self.before.metrics().items()}

    def gains(self) -> dict[str, Interval]:
        """By how much each accuracy rose, and log-loss and Brier score fell.

        A group without samples has none, and without a target there is none under it. A calibration
        error is no mean over samples, so there is no such interval of its change.
        """
        self.before.check_complete()
        samples, net = self.before.samples, self.after.right - self.before.right
        shares, n = self.before.class_shares, np.maximum(samples, 1)
        accuracies = {
            name: _paired(net, self.changed, samples, share / n, self.can_differ)
            for name, share in shares.items()
        }
        return accuracies | {name: self._fall(*sums) for name, sums in self._falls.items()}

    @property
    def sanity(self) -> Sanity:
        """How these scores do beside those of no model."""
        return sanity(self.before, self.after)

    def as_json(self) -> dict[str, Any]:
        """Whether to trust it, every metric before and after, and the gains with intervals."""
        return {
            "sanity": asdict(self.sanity),
            "metrics": {
                name: {"before": asdict(before), "after": asdict(after)}
                for name, (before, after) in self.metrics().items()
            },
            "gains": {name: asdict(gain) for name, gain in self.gains().items()},
        }

    def _fall(self, sums: Floats, squares: Floats) -> Interval:
        """Of a score that is a mean over samples; none where a class was ruled out."""
        counted = self.before.samples[self.before.weight > 0].sum()
        if counted < 2 or not isfinite(self.before.mean(sums)):
            return Interval(None)
        return self.before.mean_interval(sums, squares)


def paired_gain(
    before: Logits | ArrayLike,
    after: Logits | ArrayLike,
    labels: LabelsLike = None,
    *,
    target: PriorLike,
) -> Interval:
    """By how much accuracy under the target rose, of the same samples before and after.

    Both are labelled scores, or logits or predictions with labels, or booleans with labels: which
    samples were right. The same twice is one model beside itself, which gains 0 without any doubt.
    Without a sample of a class that the target has there is no gain. Sums per class do not tell
    which samples changed, so accumulators are refused: `Difference` counts changes.

    >>> paired_gain([0, 1, 1], [0, 0, 1], labels=[0, 0, 1], target=[1, 1]).value
    0.25
    >>> paired_gain([True, False, True], [True, True, True], [0, 0, 1], target=[1, 1]).value
    0.25
    """
    prior = Prior.of(target)
    was, truth = _right(before, labels, prior.num_classes)
    now, others = _right(after, labels, prior.num_classes)
    if not np.array_equal(truth, others):
        raise ValueError(
            "a gain is measured on the same samples before and after, but their labels differ; "
            "give both in one order"
        )
    counts = np.bincount(truth, minlength=prior.num_classes).astype(float)
    net = sums_by(truth, now.astype(float) - was, prior.num_classes)
    changed = np.bincount(truth[was != now], minlength=prior.num_classes).astype(float)
    shares = prior.probs * (counts > 0)
    if not shares.any():
        return Interval(None)
    weight = shares / shares.sum() / np.maximum(counts, 1)
    return _paired(net, changed, counts, weight, can_differ=before is not after)


def _right(
    answers: Logits | ArrayLike, labels: LabelsLike, num_classes: int
) -> tuple[Numbers, Indices]:
    """Which samples are right, and their labels; booleans already say so."""
    if labels is not None and not isinstance(answers, Scores | RightAnswers):
        values = as_numpy(answers)
        if values.dtype == np.bool_ and values.ndim == 1:
            return values, check_labels(labels, num_classes)
    guesses, truth, classes = predicted(answers, labels, num_classes)
    if classes != num_classes:
        raise ValueError(f"the samples have {classes} classes but the target has {num_classes}")
    return guesses == truth, truth


def _paired(
    net: Floats, changed: Floats, counts: Floats, weight: Floats, can_differ: bool
) -> Interval:
    value = float(weight @ net)
    if not can_differ:
        return Interval(value, value, value)
    seen = weight > 0
    net, changed, counts, weight = net[seen], changed[seen], counts[seen], weight[seen]
    samples = float(1 / (weight**2 @ counts))  # equally weighted ones (Kish)
    share = float(weight @ changed)
    # d² is one for a sample that changed.
    terms = weight**2 * counts * class_variances(net, changed, counts, least=share)
    variance = float(terms.sum()) + _MORE / samples**2
    freedom = 2 * variance**2 / (float(weight**2 @ terms) + _MORE / samples**4)
    reach = student_reach(0.05, max(freedom, _LEAST_FREEDOM)) * variance**0.5
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach))


def _is_scaled(before: Numbers, after: Numbers) -> bool:
    """Whether each row is that before times a factor plus a number, which decide alike.

    Of two classes any two rows that decide alike are, so there it is one factor for all rows.
    """
    if np.array_equal(before, after):  # also where a class is ruled out by −∞
        return True
    kinds = [part.dtype for part in (before, after) if part.dtype.kind == "f"]
    eps = max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
    if before.shape[1] < 3:
        with np.errstate(invalid="ignore", over="ignore"):
            was, now = (
                (part - part.mean(axis=1, keepdims=True, dtype=np.float64)).reshape(1, -1)
                for part in (before, after)
            )
        return _are_scaled(was, now, eps)
    parts = slices(len(before), before.shape[1], IN_CACHE)  # of which the first tells nearly always
    return all(_are_scaled(before[at], after[at], eps) for at in parts)


@np.errstate(invalid="ignore", over="ignore")  # −∞ is no multiple of anything
def _are_scaled(before: Numbers, after: Numbers, eps: float) -> bool:
    was, now = before.astype(np.float64), after.astype(np.float64)
    x, y = (part - part.mean(axis=1, keepdims=True) for part in (was, now))
    squares = (x**2).sum(axis=1)
    factor = (x * y).sum(axis=1) / np.where(squares > 0, squares, 1.0)
    left = ((y - factor[:, None] * x) ** 2).sum(axis=1)
    rounding = (now**2).sum(axis=1) + factor**2 * (was**2).sum(axis=1)
    return bool(((left <= (8 * eps) ** 2 * rounding) & (factor > 0)).all())
