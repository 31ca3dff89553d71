r"""Every metric from sums over samples, with intervals.

Samples of class y count w_y, 1/n for the samples as they are and t(y)/n_y where labels follow t, so

    mean = Σ_y w_y Σ_{i: y_i = y} term_i,        var(mean) = Σ_y w_y² · n_y · var_y(term),

the variance of a mean over samples drawn anew within each class (stratified), where var_y leans on
the other classes as far as class y has few samples (`stats.within_classes`). Accuracies have
Wilson's interval with that variance. The right answers of a class that is drawn anew are binomial,
so what else is made of recalls gets its interval by drawing those, of recalls that one sample of
the mean recall was added to, which is kept off 0 and 1.

A test set whose labels follow q stands for a population whose labels follow t if each sample counts
t(y)/q(y), as long as p(x|y) stays the same. So under a target the logits are moved to it, its
accuracy is Σ_y t(y)·recall_y, and NLL, Brier and the calibration errors are means with those
weights. What is made of the recalls alone and the accuracy of the samples as they are need no
weights: there the target only changes what is predicted.
"""

from dataclasses import replace
from math import inf, isfinite, pi, sqrt
from typing import Generic, NamedTuple, cast

import numpy as np

from longtail import stats
from longtail.core import PriorLike
from longtail.core.arrays import ArrayT, Floats, Indices, as_numpy
from longtail.core.costs import Costs, CostsLike
from longtail.core.label_odds import LabelOddsLike
from longtail.core.label_scores import LabelScores, ThresholdsLike
from longtail.metrics.labels import evaluate_labels
from longtail.metrics.recall import class_shares, geometric_means, group_means, mean_recall, ratio
from longtail.metrics.samples import LabelsLike, Logits, labelled, sums_by
from longtail.metrics.sums import ClassSums, Groups
from longtail.stats import Interval

_DRAWS = 1000
_TOO_FEW = 3  # samples of the worst class, for an interval


class Reliability(NamedTuple, Generic[ArrayT]):
    """One entry a bin, float64; confidence and accuracy are NaN where a bin holds no sample."""

    share: ArrayT
    confidence: ArrayT
    accuracy: ArrayT

    @property
    def ece(self) -> float:
        """The expected calibration error."""
        share, confidence, accuracy = map(as_numpy, self)
        return float(np.nansum(np.abs(share * (accuracy - confidence))))

    def merged(self, bins: int) -> "Reliability[Floats]":
        """The same in fewer bins, by which the number of these can be divided."""
        share, *rates = (as_numpy(part).reshape(bins, -1) for part in self)
        mass = share.sum(axis=1)
        return Reliability(mass, *(ratio(np.nansum(share * rate, axis=1), mass) for rate in rates))


class Accumulator(ClassSums):
    """Sums over samples, class by class: `add` blocks, merge with `+`, then read `metrics`.

    Args:
        num_classes: How many classes the logits have.
        target: Where labels follow this prior; None for the samples as they are. Logits are taken
            as they come: `Scores.under` moves them.
        counts: Training samples of each class, for many, medium and few.
        groups: The edges of these three, such as "many=100,few=20,inclusive"; or instead of them a
            boolean mask over the classes for each name.
        label_counts: How many of the samples to come are of each class, where that is known: the
            class-wise calibration error under a target needs it.
        bins: How many bins of equal width confidences fall into.

    >>> first, second = Accumulator(2), Accumulator(2)
    >>> first.add([[3.0, 0.0], [2.0, 0.0]], [0, 0]).right.tolist()
    [True, True]
    >>> second.add([[1.0, 0.0], [1.5, 0.0]], [0, 1]).right.tolist()
    [True, False]
    >>> (first + second).metrics()["nll"].value
    0.548
    """

    @property
    def recalls(self) -> Floats:
        """The share of each class that is right; NaN for a class without samples."""
        return ratio(self.right, self.samples)

    @property
    def false_positives(self) -> Floats:
        """For each class the samples of other classes that were taken for it."""
        return np.asarray(self.predicted - self.right)

    @property
    def class_shares(self) -> dict[str, Floats]:
        """What each class counts for in each accuracy, all classes together one."""
        return class_shares(self.samples, self.target, self.groups)

    @property
    def reliability(self) -> Reliability[Floats]:
        """By bin of confidence: the share of samples, their mean confidence and accuracy."""
        mass, right, confidence = np.einsum("y,kyb->kb", self.weight, self._cells[:3])
        return Reliability(mass, ratio(confidence, mass), ratio(right, mass))

    @property
    def bin_gaps(self) -> Floats:
        """By bin of confidence: Σ_i w_i · (right_i − confidence_i), whose sizes are the ECE."""
        return np.asarray(self.weight @ (self._cells[1] - self._cells[2]))

    @property
    def ece(self) -> float:
        """The expected calibration error."""
        return float(np.abs(self.bin_gaps).sum())

    @property
    def geometric_mean(self) -> float:
        """Of the recalls of the classes that have samples."""
        return float(geometric_means(self.recalls[self.samples > 0]))

    @property
    def ece_by_chance(self) -> float:
        """About the ECE of a calibrated model: the mean of |gap| where a gap is normal around 0."""
        return sqrt(2 / pi) * float(np.sqrt(self.weight**2 @ self._cells[3]).sum())

    def values(self) -> dict[str, float | None]:
        """Every metric by its name; None where there is no such thing."""
        self.check_complete()
        recall, target = self.recalls, self.target
        under = None if target is None else mean_recall(recall, target.probs)
        values = {
            "accuracy": mean_recall(recall, self.samples),
            "accuracy_under_target": under,
            "balanced_accuracy": mean_recall(recall),
            "geometric_mean": self.geometric_mean,
            "worst_class": float(np.nanmin(recall)),
            "nll": self.mean(self.nll),
            "brier": self.mean(self.brier),
            "ece": self.ece,
            "classwise_ece": self.classwise_ece,
            "classwise_ece_paper": self.classwise_ece_paper,
            "absent_classes": float((self.samples == 0).sum()),
        }
        clash = sorted(self.groups.keys() & values.keys())
        if clash:
            raise ValueError(f"groups must not be named like a metric, got {clash}; rename them")
        return values | group_means(recall, self.groups)

    def metrics(self, seed: int = 0) -> dict[str, Interval]:
        """Every metric with its 95 % interval where there is one."""
        measured = {name: Interval(value) for name, value in self.values().items()}
        for name, shares in self.class_shares.items():
            ends = stats.share_interval(self.right, self.samples, shares)
            measured[name] = replace(measured[name], low=ends[0], high=ends[1])
        drawn, worst = self._drawn_recalls(seed), float(self.recalls[self.samples > 0].min())
        measured["geometric_mean"] = stats.quantile_interval(
            self.geometric_mean, geometric_means(drawn)
        )
        if self.samples[self.recalls == worst].max() >= _TOO_FEW:  # fewer say nothing of a class
            # The worst of many classes drawn anew is worse: the interval reaches up to the value.
            measured["worst_class"] = stats.quantile_interval(worst, drawn.min(axis=-1))
        measured["nll"] = self.mean_interval(self.nll, self.nll_squares, least=0.0)
        measured["brier"] = self.mean_interval(self.brier, self.brier_squares, least=0.0)
        variance = float((self.weight**2 @ self._cells[3]).sum())
        measured["ece"] = stats.normal_interval(self.ece, variance, 0.0, 1.0)
        return measured

    def mean(self, sums: Floats) -> float:
        """The mean over samples of what `sums` is the sum of in each class, such as `nll`."""
        seen = self.weight > 0  # a class that does not count may have an infinite sum
        with np.errstate(invalid="ignore"):  # infinite both ways: no mean
            return float(self.weight[seen] @ sums[seen])

    def mean_interval(self, sums: Floats, squares: Floats, least: float = -inf) -> Interval:
        """The mean with its 95 % interval, from sums of squares too."""
        value, seen = self.mean(sums), self.weight > 0
        n, weight = self.samples[seen], self.weight[seen]
        if n.sum() < 2 or not isfinite(value):  # of one sample nobody knows how others would differ
            return Interval(value)
        variances = n * stats.class_variances(sums[seen], squares[seen], n)
        return stats.normal_interval(value, float(weight**2 @ variances), least)

    def mean_of(self, terms: Floats, labels: Indices, least: float = 0.0) -> Interval:
        """The mean with its 95 % interval of one number for each of the samples that were added."""
        sums, squares = (sums_by(labels, each, self.num_classes) for each in (terms, terms**2))
        return self.mean_interval(sums, squares, least)

    def _drawn_recalls(self, seed: int) -> Floats:
        """Recalls of the classes that have samples, drawn anew: a row a draw."""
        recall, n = self.recalls[self.samples > 0], self.samples[self.samples > 0]
        worth = len(n) ** 2 / float((1 / n).sum())  # samples (Kish)
        # As for accuracies: where all are right, or all wrong, others need not be.
        usual = (worth * float(recall.mean()) + 0.5) / (worth + 1)
        chances, times = (n * recall + usual) / (n + 1), np.ceil(n).astype(int)
        drawn = np.random.default_rng(seed).binomial(times, chances, (_DRAWS, len(n)))
        return np.asarray(drawn / times)

    @property
    def classwise_ece(self) -> float | None:
        """Of every class's probability; None under a target without label_counts."""
        if self.target != self._gap_target:
            return None
        total = float(self.samples @ self._gap_weight)
        return float(np.abs(self._cells[4]).sum()) / total / self.num_classes

    @property
    def classwise_ece_paper(self) -> float:
        """LADE's form, in which a sample enters for its true class only."""
        gaps = self.weight[:, None] * (self._cells[1] - self._cells[2])
        return float(np.abs(gaps).sum()) / self.num_classes


def evaluate(
    logits: Logits | Accumulator,
    labels: LabelsLike = None,
    *,
    target: PriorLike | LabelOddsLike | None = None,
    groups: Groups | None = None,
    costs: CostsLike | None = None,
    abstain: float | None = None,
    thresholds: ThresholdsLike | None = None,
) -> dict[str, float | None]:
    """Every metric of labelled scores, or logits with labels, by name; None where there is none.

    They are `accuracy` (each sample counts once), `accuracy_under_target`, `balanced_accuracy`,
    `geometric_mean`, `worst_class`, `nll`, `brier`, `ece`, `classwise_ece`, `classwise_ece_paper`,
    `absent_classes` (without samples, and left out of every recall), and an accuracy a group.

    With a target the scores are moved to it, which raises UnknownPriorError if it is not known what
    they carry; without one they stay as they are and every sample counts the same. Groups are
    many, medium and few, if the scores know the counts, by other edges than the default as
    `GroupEdges` or text, or boolean masks over the classes. An accumulator has its own.

    With costs, as `Scores.decide` takes them, also `cost`, what a sample costs on average if it is
    decided by them, with the ends of its 95 % interval, `cost_low` and `cost_high`.

    Of scores of yes/no labels, `family="sigmoid"`, they are the means over the labels of
    `per_label`, and of groups the mean average precision; `thresholds` say what is yes.

    >>> from longtail import Scores
    >>> logits = [[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], [1.5, 0.0]]
    >>> scores = Scores(logits, labels=[0, 0, 0, 1], carried=[90, 10])
    >>> plain, uniform = evaluate(scores), evaluate(scores, target=[1, 1])
    >>> plain["accuracy"], plain["balanced_accuracy"], plain["nll"]
    (0.75, 0.5, 0.548)
    >>> uniform["accuracy"], uniform["accuracy_under_target"], uniform["balanced_accuracy"]
    (0.5, 0.667, 0.667)
    >>> evaluate(scores, costs=[1, 20])["cost"]
    0.5
    """
    if isinstance(logits, Accumulator):
        others = (labels, target, groups, costs, abstain, thresholds)
        if any(each is not None for each in others):
            raise ValueError(
                "an accumulator has its labels, target and groups, and no single samples for "
                "costs and thresholds; leave them out"
            )
        return logits.values()
    if isinstance(logits, LabelScores):
        if costs is not None or abstain is not None:
            raise ValueError(
                'costs are for scores of one class a sample, family="softmax"; of yes/no labels '
                "give thresholds, which posthoc.Thresholds chooses"
            )
        if labels is not None:
            raise ValueError("scores have their labels: give evaluate the scores alone")
        return evaluate_labels(logits, cast("LabelOddsLike | None", target), groups, thresholds)
    if thresholds is not None:
        raise ValueError(
            'thresholds are for scores of yes/no labels, family="sigmoid"; of one class a sample '
            "the most likely is predicted: leave them out"
        )
    if costs is None and abstain is not None:
        raise ValueError("abstain is what not deciding costs: give the other costs, too")
    scores, goal = labelled(logits, labels), cast("PriorLike | None", target)
    moved = scores if goal is None else scores.under(goal)
    sums = Accumulator.of(moved, goal, scores.counts, groups=groups)
    values = sums.values()
    if costs is None:
        return values
    checked, truth = Costs.of(costs, scores.num_classes, scores.classes), as_numpy(moved.labels)
    decided = as_numpy(moved.decide(checked, abstain=abstain))
    cost = sums.mean_of(checked.realised(truth, decided, abstain), truth)
    return values | {"cost": cost.value, "cost_low": cost.low, "cost_high": cost.high}
