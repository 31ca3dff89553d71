r"""How good scores of yes/no labels are, label by label, and their means over the labels.

Of each label's samples positives count w₁ and negatives w₀: all alike for the samples as they are,
t/n₁ and (1 − t)/n₀ where the label has the odds of a target. From sums by label and truth, which
merge, come

    precision TP/(TP + FP),  recall TP/P,  F1 2TP/(TP + FP + P),  balanced accuracy,
    NLL, Brier score, and the ECE of p = σ(z) in bins:  Σ_b |Σ_{i in b} w_i (y_i − p_i)|

Average precision, Σ_k (R_k − R_{k−1}) P_k from the highest score on, needs the order of all scores:
it is no function of sums, so an `Accumulator` of parts does not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from longtail.core import GroupsLike, shot_groups
from longtail.core.arrays import ArrayLike, Floats, Numbers, as_numpy
from longtail.core.blocks import BLOCK, blocks, slices
from longtail.core.label_matrix import check_label_matrix
from longtail.core.label_odds import LabelOdds, LabelOddsLike, check_same_labels
from longtail.core.label_scores import LabelScores, ThresholdsLike
from longtail.core.numbers import check_whole
from longtail.core.softmax import sigmoid
from longtail.core.threads import in_threads
from longtail.metrics.recall import check_mask, ratio
from longtail.metrics.terms import BINS

Groups = Mapping[str, ArrayLike] | GroupsLike


class LabelMetrics(NamedTuple):
    """One number a label, float64; NaN where there is none, as of a label without positives."""

    positives: Floats  # samples that have the label
    predicted: Floats  # samples that were said to have it
    precision: Floats
    recall: Floats
    f1: Floats
    balanced_accuracy: Floats
    average_precision: Floats
    ece: Floats
    brier: Floats
    nll: Floats

    def macro(self) -> dict[str, float | None]:
        """The mean of each over the labels that have it, and how many labels have no positives."""
        means = {name: mean_of(values) for name, values in self._asdict().items()}
        del means["positives"], means["predicted"]
        return means | {"absent_labels": float((self.positives == 0).sum())}


class LabelAccumulator:
    """Sums over samples, label by label: `add` blocks, merge with `+`, then read the metrics.

    Args:
        num_labels: How many labels there are.
        target: Where labels have these odds; None for the samples as they are. Logits are taken as
            they come: `Scores.under` moves them.
        bins: How many bins of equal width probabilities fall into.

    >>> first, second = LabelAccumulator(1), LabelAccumulator(1)
    >>> first.add([[2.0], [1.0]], [[1], [0]])
    >>> second.add([[-1.0], [0.5]], [[0], [1]])
    >>> (first + second).f1.tolist()
    [0.8]
    """

    def __init__(
        self, num_labels: int, target: LabelOddsLike | None = None, *, bins: int = BINS
    ) -> None:
        self.num_labels = check_whole(num_labels, "num_labels", least=1)
        self.bins = check_whole(bins, "bins", least=1)
        self.target = None if target is None else LabelOdds.of(target)
        if self.target is not None:
            check_same_labels(num_labels, self.target, "the samples have", "the target has")
        # By truth and label: samples, those predicted to be yes, NLL, Brier score.
        self._sums = np.zeros((4, 2, num_labels))
        # By truth, label and bin: samples, and the sum of their probabilities.
        self._cells = np.zeros((2, 2, num_labels, self.bins))

    @classmethod
    def of(
        cls,
        scores: LabelScores[Any],
        target: LabelOddsLike | None = None,
        thresholds: ThresholdsLike | None = None,
    ) -> Self:
        """The sums of labelled scores as they are; by default yes is what is more likely."""
        labels, sums = as_numpy(scores.labels), cls(scores.num_labels, target)
        from_on = None if thresholds is None else scores._threshold_logits(thresholds)
        for rows, truth in blocks(scores.logits, labels, numbers=BLOCK // 8):
            sums._add(rows, truth, from_on)
        return sums

    def add(self, logits: ArrayLike, labels: object, thresholds: Floats | None = None) -> None:
        """Count a block of samples in; `thresholds` are logits from which on the answer is yes."""
        scores = LabelScores(logits, labels, _are_logits=True)  # type: ignore[arg-type]
        matrix = check_label_matrix(labels, self.num_labels)
        self._add(as_numpy(scores.logits), matrix, thresholds)

    def _add(self, rows: Numbers, labels: Numbers, thresholds: Floats | None) -> None:
        wide = rows.astype(np.float64)
        probs = sigmoid(wide)
        is_yes = wide > 0 if thresholds is None else wide >= thresholds
        # −log σ(z) for yes, −log σ(−z) for no.
        nll = np.logaddexp(0, np.where(labels, -wide, wide))
        where = np.minimum((probs * self.bins).astype(np.int64), self.bins - 1)
        cell = where + self.bins * (np.arange(self.num_labels) + self.num_labels * labels)
        shape = self._cells.shape[1:]
        for into, values in zip(self._cells, (None, probs.ravel()), strict=True):
            counted = np.bincount(cell.ravel(), values, into.size)
            into += counted.reshape(shape)
        for truth in (0, 1):
            own = labels == truth
            parts = (
                own,
                own & is_yes,
                np.where(own, nll, 0),
                np.where(own, (probs - truth) ** 2, 0),
            )
            for total, part in zip(self._sums[:, truth], parts, strict=True):
                total += part.sum(axis=0)

    def __add__(self, other: Self) -> Self:
        mine, theirs = ((e.num_labels, e.bins, e.target) for e in (self, other))
        if mine != theirs:
            raise ValueError(
                "sums merge if they were made alike; got other labels, bins or another target"
            )
        merged = type(self)(self.num_labels, self.target, bins=self.bins)
        merged._sums, merged._cells = self._sums + other._sums, self._cells + other._cells
        return merged

    @property
    def samples(self) -> Floats:
        """Without and with each label: shape (2, L)."""
        return np.asarray(self._sums[0])

    @property
    def weight(self) -> Floats:
        """What a sample without, and with, each label counts; those of a label sum to one."""
        n = self.samples
        if not n.any():
            raise ValueError("a metric needs at least one sample, but none was added")
        if self.target is None:
            return np.asarray(np.ones_like(n) / n.sum(axis=0))
        yes = self.target.probs
        return ratio(np.stack([1 - yes, yes]), n)  # NaN where there is none of that kind

    @property
    def masses(self) -> tuple[Floats, Floats, Floats, Floats]:
        """True and false positives, positives and negatives, as shares of all."""
        weight = self.weight
        (false, true), (no, yes) = weight * self._sums[1], weight * self.samples
        return true, false, yes, no

    @property
    def precision(self) -> Floats:
        """The share of yes among those that were said to be; NaN where none was."""
        true, false, *_ = self.masses
        return ratio(true, true + false)

    @property
    def recall(self) -> Floats:
        """The share of the positives that were found."""
        return ratio(self._sums[1, 1], self.samples[1])

    @property
    def f1(self) -> Floats:
        """The harmonic mean of precision and recall; NaN for labels without positives."""
        true, false, yes, _ = self.masses
        return ratio(2 * true, np.where(yes > 0, true + false + yes, 0))

    @property
    def balanced_accuracy(self) -> Floats:
        """The mean of the shares of positives and of negatives that are right."""
        return np.asarray((self.recall + 1 - ratio(self._sums[1, 0], self.samples[0])) / 2)

    @property
    def nll(self) -> Floats:
        """The mean of −log p of the truth."""
        return np.asarray((self.weight * self._sums[2]).sum(axis=0))

    @property
    def brier(self) -> Floats:
        """The mean of (p − y)², p that of yes: half of what a Brier score of two classes is."""
        return np.asarray((self.weight * self._sums[3]).sum(axis=0))

    @property
    def ece(self) -> Floats:
        """How far the probability of yes is off, in bins."""
        (no, yes) = self.weight[:, :, None] * (
            np.array([0.0, 1.0])[:, None, None] * self._cells[0] - self._cells[1]
        )
        return np.asarray(np.abs(no + yes).sum(axis=1))


def average_precision(scores: LabelScores[Any], target: LabelOddsLike | None = None) -> Floats:
    """Of each label, under the odds of a target if one is given; NaN without positives.

    A move of all logits of a label changes no order, so only what samples count depends on it.
    """
    checked = labelled_matrix(scores)
    logits, labels = as_numpy(checked.logits), as_numpy(checked.labels)
    shares = None if target is None else LabelOdds.of(target, checked.classes).probs

    def of(part: slice) -> float:
        own, is_yes = np.ascontiguousarray(logits[:, part.start]), labels[:, part.start] == 1
        yes, no = np.sort(own[is_yes]), np.sort(own[~is_yes])
        if not len(yes):
            return float("nan")
        levels, first, times = np.unique(yes, return_index=True, return_counts=True)
        share = len(yes) / len(own) if shares is None else float(shares[part.start])
        true = share * (len(yes) - first) / len(yes)
        false = (1 - share) * (len(no) - np.searchsorted(no, levels)) / max(len(no), 1)
        return float((times / len(yes)) @ (true / (true + false)))

    return np.array(in_threads(of, list(slices(checked.num_labels, 1, 1))))


def per_label(
    scores: LabelScores[Any],
    target: LabelOddsLike | None = None,
    thresholds: ThresholdsLike | None = None,
) -> LabelMetrics:
    """Every metric of each label; under a target the scores are moved there and counted so.

    >>> scores = LabelScores([[2.0], [1.0], [-1.0], [0.5]], [[1], [0], [0], [1]], carried=[0.5])
    >>> per_label(scores).precision.round(3), per_label(scores, thresholds=0.8).precision
    (array([0.667]), array([1.]))
    """
    checked = labelled_matrix(scores)
    goal = None if target is None else LabelOdds.of(target, checked.classes)
    moved = checked if goal is None else checked.under(goal)
    sums = LabelAccumulator.of(moved, goal, thresholds)
    return metrics_of(sums, average_precision(checked, goal))


def metrics_of(sums: LabelAccumulator, precision: Floats) -> LabelMetrics:
    """Every metric from the sums, and the average precision, which they do not have."""
    return LabelMetrics(
        sums.samples[1],
        sums._sums[1].sum(axis=0),
        sums.precision,
        sums.recall,
        sums.f1,
        sums.balanced_accuracy,
        precision,
        sums.ece,
        sums.brier,
        sums.nll,
    )


def evaluate_labels(
    scores: LabelScores[Any],
    target: LabelOddsLike | None = None,
    groups: Groups | None = None,
    thresholds: ThresholdsLike | None = None,
) -> dict[str, float | None]:
    """The means over the labels; many, medium and few are mean average precisions of theirs."""
    each = per_label(scores, target, thresholds)
    if not isinstance(groups, Mapping):
        groups = {} if scores.counts is None else shot_groups(as_numpy(scores.counts), groups)
    masks = {name: check_mask(mask, scores.num_labels, name) for name, mask in groups.items()}
    of_groups = {name: mean_of(each.average_precision[mask]) for name, mask in masks.items()}
    return each.macro() | of_groups


def mean_of(values: Floats) -> float | None:
    """The mean of those that are not NaN; None if all are."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else None


def labelled_matrix(scores: LabelScores[Any]) -> LabelScores[Any]:
    """Scores of yes/no labels with labels, and at least one sample, or a ValueError."""
    if not isinstance(scores, LabelScores):
        raise ValueError(
            'this metric is for scores of yes/no labels, Scores(logits, ..., family="sigmoid"), '
            f"got {scores!r:.80}"
        )
    if scores.labels is None:
        raise ValueError(
            "a metric compares scores with labels, but these have no labels; give them: "
            'Scores(logits, labels=labels, ..., family="sigmoid")'
        )
    if not len(scores):
        raise ValueError("a metric needs at least one sample, got none")
    return scores
