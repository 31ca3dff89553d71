r"""Runs measured on the same samples: every metric, and the terms that it is a sum of.

Under a target all metrics but the worst class are sums over samples, class by class,

    metric = Σ_i w(y_i) · x_i,    x_i = right_i,  −log p(y_i|x_i)  or  ±(right_i − confidence_i),

where w(y) is the weight of the class over its samples, and ± the sign of the gap of the sample's
bin, which makes the ECE a sum. Two runs are then compared sample by sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core import GroupEdges, Prior, Scores, shot_groups
from longtail.group_edges import DEFAULT_EDGES
from longtail.metrics import Accumulator, Interval
from longtail.metrics.recall import class_shares
from longtail.metrics.terms import bin_of

Floats: TypeAlias = npt.NDArray[np.float64]
_TERM = {"nll": "nll", "ece": "gap"}  # of all others it is `right`


@dataclass(frozen=True)
class Metric:
    """A column of the comparison.

    Differences in a minimum over classes are not tested: what decides it is found by looking.
    """

    key: str  # its name in `lt.metrics.evaluate`
    name: str  # what it is called
    short: str  # one word, for a terminal
    percent: bool = True  # whether it is a share, shown in %
    digits: int = 1  # decimals it is shown with
    best: Literal["high", "low"] = "high"  # which end of it is good
    tested: bool = True  # whether differences in it are

    @property
    def factor(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.percent else 1.0

    def ahead(self, value: float) -> float:
        """The value turned so that more is better."""
        return value if self.best == "high" else -value


METRICS = (
    Metric("accuracy_under_target", "accuracy under the target", "under target"),
    Metric("balanced_accuracy", "balanced accuracy", "balanced"),
    Metric("accuracy", "accuracy, samples as they are", "accuracy"),
    Metric("many", "many", "many"),
    Metric("medium", "medium", "medium"),
    Metric("few", "few", "few"),
    Metric("worst_class", "worst class", "worst", tested=False),
    Metric("ece", "ECE", "ECE", best="low"),
    Metric("nll", "NLL", "NLL", percent=False, digits=3, best="low"),
)
BY_KEY = {metric.key: metric for metric in METRICS}


@dataclass(frozen=True, eq=False)
class SampleSet:
    """What the runs of a table are measured on."""

    name: str  # what it is called
    labels: npt.NDArray[np.int64]  # the true classes
    num_classes: int  # how many classes there are
    target: Prior | None = None  # the prior to measure under; None for the samples as they are
    counts: npt.NDArray[np.int64] | None = None  # training samples of each class, if known
    edges: GroupEdges = DEFAULT_EDGES  # of many, medium and few

    @cached_property
    def label_counts(self) -> Floats:
        """Samples of each class."""
        return np.bincount(self.labels, minlength=self.num_classes).astype(np.float64)

    @cached_property
    def class_shares(self) -> dict[str, Floats]:
        """What each class counts for in each accuracy."""
        groups = {} if self.counts is None else shot_groups(self.counts, self.edges)
        return class_shares(self.label_counts, self.target, groups)

    def weights(self, key: str) -> Floats:
        """How much each sample of each class counts for a metric; all samples together one."""
        usual = "accuracy" if self.target is None else "accuracy_under_target"
        shares = self.class_shares[usual if key in (*_TERM, "accuracy_under_target") else key]
        return np.asarray(shares / np.maximum(self.label_counts, 1))


@dataclass(frozen=True, eq=False)
class Run:
    """One trained model, measured.

    Scores that carry the target, or an unknown prior, are not moved: `as_trained` is `metrics`.
    """

    method: str  # what it is a run of
    seed: str  # what tells it from other runs of the method
    metrics: Mapping[str, Interval]  # every metric with its interval over test samples
    right: Floats  # of each sample, whether it was predicted right
    nll: Floats  # of each sample, −log p(y|x)
    gap: Floats  # of each sample, right − confidence with the sign of its bin
    as_trained: Mapping[str, Interval] = field(default_factory=dict)  # of the scores as they are
    moved: bool = True  # False where it is not known what the scores carry, so that they stayed
    source: str = ""  # where the scores are from

    def terms(self, key: str) -> Floats:
        """What the metric is a sum of, one number a sample."""
        terms: Floats = getattr(self, _TERM.get(key, "right"))
        return terms

    def is_copy_of(self, other: "Run") -> bool:
        """Whether both gave every sample the same probability."""
        return np.array_equal(self.nll, other.nll) and np.array_equal(self.right, other.right)


def measured_run(
    scores: Scores, samples: SampleSet, method: str, seed: str = "0", source: str = ""
) -> Run:
    """Measure labelled scores under the target of the set, and beside that as they are.

    They are moved to the target if it is known what they carry, and else taken as they are.

    >>> samples = SampleSet("toy", np.array([0, 0, 1]), 2, Prior.uniform(2))
    >>> scores = Scores([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0]], labels=[0, 0, 1])
    >>> run = measured_run(scores, samples, "CE")
    >>> run.metrics["balanced_accuracy"].value, run.right.tolist(), run.moved
    (0.75, [1.0, 0.0, 1.0], False)
    """
    target = samples.target
    is_known = target is not None and scores.carried is not None
    moved = scores.under(target) if target is not None and is_known else scores
    sums = _sums(samples)
    terms = sums.add(moved.logits, samples.labels, _are_logits=True)
    # A class that does not count may have infinite ones.
    nll = np.where(samples.weights("ece")[samples.labels] > 0, terms.nll, 0.0)
    gap = np.sign(sums.bin_gaps)[bin_of(terms.confidence)] * (terms.right - terms.confidence)
    metrics = as_trained = sums.metrics()
    if target is not None and scores.carried and not scores.carried.is_close(target):
        as_they_are = _sums(samples)
        as_they_are.add(scores.logits, samples.labels, _are_logits=True)
        as_trained = as_they_are.metrics()
    right, is_moved = terms.right.astype(np.float64), is_known or target is None
    return Run(method, seed, metrics, right, nll, gap, as_trained, is_moved, source)


def _sums(samples: SampleSet) -> Accumulator:
    return Accumulator(
        samples.num_classes,
        samples.target,
        samples.counts,
        groups=samples.edges,
        label_counts=samples.label_counts,
    )
