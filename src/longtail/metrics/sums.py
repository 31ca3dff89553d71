r"""Sums over samples, class by class, that merge: of blocks, of streams, of machines.

What is kept is, of each class, its samples, right answers and predictions, its NLL and Brier score
with their squares, and cells of true class and bin of confidence. Every metric is a function of
these, under any target (`accumulator`), but for one: the class-wise calibration error takes the
absolute value of gaps in which samples of all classes meet, so under a target the weight of a
sample must be known when it is added. Say `label_counts` where they are known; without them there
is no class-wise error under a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Self, TypeAlias

import numpy as np

from longtail.core import GroupsLike, Prior, PriorLike, Scores, shot_groups
from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, RowsLike, as_numpy
from longtail.core.blocks import blocks
from longtail.core.labels import check_counts, check_labels
from longtail.core.numbers import check_weights, check_whole
from longtail.core.prior import check_same_classes
from longtail.core.probabilities import check_not_probs
from longtail.core.score_checks import check_rows
from longtail.metrics.recall import check_mask, ratio
from longtail.metrics.samples import labelled, sums_by
from longtail.metrics.terms import BINS, Terms, bin_of, block_sums, slack_of

Groups: TypeAlias = Mapping[str, ArrayLike] | GroupsLike  # masks over the classes, or edges


class ClassSums:
    """What an `Accumulator` keeps, how it grows and how it merges."""

    samples: Floats  # of each class: how many were added
    right: Floats  # how many of them were predicted right
    predicted: Floats  # how many samples of any class were predicted to be of it
    nll: Floats
    nll_squares: Floats
    brier: Floats
    brier_squares: Floats

    def __init__(
        self,
        num_classes: int,
        target: PriorLike | None = None,
        counts: ArrayLike | None = None,
        *,
        groups: Groups | None = None,
        label_counts: ArrayLike | None = None,
        bins: int = BINS,
    ) -> None:
        self.num_classes = check_whole(num_classes, "num_classes", least=1)
        self.bins = check_whole(bins, "bins", least=1)
        self.target = None if target is None else Prior.of(target)
        if self.target is not None:
            check_same_classes(num_classes, self.target, "the samples have", "the target")
        if not isinstance(groups, Mapping):  # their edges
            checked = None if counts is None else check_counts(counts, num_classes)
            groups = {} if checked is None else shot_groups(checked, groups)
        self.groups = {name: check_mask(m, num_classes, name) for name, m in groups.items()}
        self.label_counts: Floats | None = None
        self._gap_target: Prior | None = None  # what samples are weighted to in the class-wise gaps
        self._gap_weight = np.ones(num_classes)
        if label_counts is not None:
            self.label_counts = check_counts(label_counts, num_classes).astype(float)
            if self.target is not None and self.label_counts.any():
                self._gap_weight = _weights(self.label_counts, self.target)
                self._gap_target = self.target
        self._set_sums(np.zeros((7, num_classes)), np.zeros((5, num_classes, self.bins)))

    def _set_sums(self, of_class: Floats, cells: Floats) -> None:
        self._of_class, self._cells = of_class, cells
        self.samples, self.right, self.predicted = of_class[:3]
        self.nll, self.nll_squares, self.brier, self.brier_squares = of_class[3:]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)  # from another process, where names are no longer parts of one
        self._set_sums(self._of_class, self._cells)

    @classmethod
    def of(
        cls,
        scores: Scores[Any],
        target: PriorLike | None = None,
        counts: ArrayLike | None = None,
        *,
        groups: Groups | None = None,
        weights: ArrayLike | None = None,
        bins: int = BINS,
        _whole: bool = True,
    ) -> Self:
        """The sums of labelled scores as they are; `weights`: as how many samples each counts."""
        labels = as_numpy(labelled(scores).labels)
        seen = np.bincount(labels, minlength=scores.num_classes) if weights is None else None
        sums = cls(scores.num_classes, target, counts, groups=groups, label_counts=seen, bins=bins)
        for block in blocks(scores.logits, labels, check_weights(weights, len(labels))):
            sums._add(*block, whole=_whole)
        return sums

    def add(
        self,
        logits: RowsLike,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        _are_logits: bool = False,
    ) -> Terms:
        """Count a block of samples in, each as so many by its weight; what each of them added."""
        rows, truth = check_block(logits, labels, self.num_classes, _are_logits)
        return self._add_all(rows, truth, weights)

    def _add_all(self, rows: Numbers, labels: Indices, weights: ArrayLike | None = None) -> Terms:
        if not len(labels):
            return Terms(np.zeros(0, bool), *np.zeros((3, 0)))
        parts = [self._add(*b) for b in blocks(rows, labels, check_weights(weights, len(labels)))]
        return Terms(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @classmethod
    def of_terms(
        cls,
        labels: ArrayLike,
        right: ArrayLike,
        num_classes: int,
        *,
        confidence: ArrayLike | None = None,
        nll: ArrayLike | None = None,
        brier: ArrayLike | None = None,
        target: PriorLike | None = None,
    ) -> Self:
        """The sums of samples whose logits are gone, and what each of them added is known.

        What is left out is NaN in every metric, as is what takes all probabilities of a sample: the
        class-wise calibration error, and how often each class was predicted.

        >>> sums = ClassSums.of_terms([0, 0, 1], [True, False, True], 2, nll=[0.1, 1.0, 0.4])
        >>> sums.right.tolist(), sums.nll.tolist()
        ([1.0, 1.0], [1.1, 0.4])
        """
        truth, sums = check_labels(labels, num_classes), cls(num_classes, target)
        unknown = np.full(len(truth), np.nan)
        nlls, briers, sure = (
            unknown if each is None else as_numpy(each) for each in (nll, brier, confidence)
        )
        terms = Terms(as_numpy(right).astype(bool), nlls, briers, sure)
        with np.errstate(invalid="ignore"):  # the bin of a confidence that is NaN
            sums._add_terms(terms, truth, np.ones(len(truth)), slack=0.0)
        sums.predicted[:] = np.nan
        sums._cells[4] = np.nan
        return sums

    def under(self, target: PriorLike | None) -> Self:
        """The same samples where labels follow another prior, their logits left as they are."""
        other = copy(self)
        other.target = None if target is None else Prior.of(target)
        if other.target is not None:
            check_same_classes(self.num_classes, other.target, "the samples have", "the target")
        return other

    def _add(self, rows: Numbers, labels: Indices, times: Floats, *, whole: bool = True) -> Terms:
        weighted = times * self._gap_weight[labels]
        terms, guesses, class_gaps = block_sums(rows, labels, weighted, self.bins, whole)
        self.predicted += sums_by(guesses, times, self.num_classes)
        self._cells[4] += class_gaps
        self._add_terms(terms, labels, times, slack_of(rows))
        return terms

    @np.errstate(over="ignore")  # squares of log-losses near the end of float64
    def _add_terms(self, terms: Terms, labels: Indices, times: Floats, slack: float) -> None:
        right, nll, brier, confidence = terms
        if not times.all():  # a sample that counts for nothing may have an infinite log-loss
            nll = np.where(times > 0, nll, 0.0)
        gap = right - confidence
        of_class = (self.samples, self.right, *self._of_class[3:])
        one = np.ones(1)
        values: list[Numbers] = [one, right, nll, nll**2, brier, brier**2]
        for total, value in zip(of_class, values, strict=True):
            total += sums_by(labels, times * value, self.num_classes)
        cell = labels * self.bins + bin_of(confidence, self.bins, slack)
        values = [one, right, confidence, gap**2]
        for cells, value in zip(self._cells, values, strict=False):
            cells += sums_by(cell, times * value, cells.size).reshape(cells.shape)

    def __add__(self, other: Self) -> Self:
        mine, theirs = (
            (each.num_classes, each.bins, each.target, [*each.groups]) for each in (self, other)
        )
        if mine != theirs or not all(
            np.array_equal(mask, other.groups[name]) for name, mask in self.groups.items()
        ):
            raise ValueError(
                "sums merge if they were made alike; got other classes, bins, groups or target"
            )
        merged = copy(self)
        merged._set_sums(self._of_class + other._of_class, self._cells + other._cells)
        if not np.array_equal(self._gap_weight, other._gap_weight):
            merged._gap_target = None  # the class-wise gaps were weighted otherwise: there are none
        own, others = self.label_counts, other.label_counts
        if own is None or others is None:
            merged.label_counts = None
        elif all((each.samples == each.label_counts).all() for each in (self, other)):
            merged.label_counts = merged.samples.copy()  # each was whole, and so is the sum
        elif not np.array_equal(own, others):
            raise ValueError("parts of one set merge if both have its label_counts; got others")
        return merged

    def reset(self) -> None:
        """Forget all samples."""
        self._of_class[:] = 0
        self._cells[:] = 0

    @property
    def weight(self) -> Floats:
        """What a sample of each class counts; all samples together one."""
        return _weights(self.samples, self.target)

    def check_complete(self) -> None:
        """Raise unless as many samples of each class were added as `label_counts` says."""
        _check_any(self.samples)
        if self.label_counts is not None and (self.samples != self.label_counts).any():
            at = int((self.samples != self.label_counts).argmax())
            raise ValueError(
                f"label_counts says that {int(self.label_counts[at])} samples of class {at} come, "
                f"but {int(self.samples[at])} were added; give the counts of the labels that are "
                "added, such as class_counts(labels, num_classes), or none"
            )


def check_block(
    logits: RowsLike, labels: ArrayLike, num_classes: int, are_logits: bool
) -> tuple[Numbers, Indices]:
    """Logits of shape (N, C) with a label each, or a ValueError; `are_logits` as in `Scores`."""
    rows, truth = as_numpy(logits), check_labels(labels, num_classes)
    if rows.shape != (len(truth), num_classes):
        raise ValueError(
            f"expected logits of shape ({len(truth)}, {num_classes}) for {len(truth)} "
            f"labels and {num_classes} classes, got {rows.shape}"
        )
    if not are_logits:
        check_rows(rows, "logits")
        check_not_probs(rows)
    return rows, truth


def _weights(samples: Floats, target: Prior | None) -> Floats:
    """What a sample of each class counts, all together one; nothing where there are none."""
    _check_any(samples)
    mass = samples if target is None else target.probs * (samples > 0)
    if not mass.sum() > 0:
        raise ValueError(
            "nothing can be measured where the classes without samples hold all the weight of the "
            "target; use another target, or samples of its classes"
        )
    return np.nan_to_num(ratio(mass / mass.sum(), samples))


def _check_any(samples: Floats) -> None:
    if not samples.any():
        raise ValueError("a metric needs at least one sample, but none was added")
