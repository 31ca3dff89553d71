r"""Runs measured on the same samples: every metric, and the terms that it is a sum of.

Under a target all metrics but the worst class are sums over samples, class by class,

    metric = Σ_i w(y_i) · x_i,    x_i = right_i,  −log p(y_i|x_i)  or  ±(right_i − confidence_i),

where w(y) is the weight of the class over its samples, and ± the sign of the gap of the sample's
bin, which makes the ECE a sum. Two runs are then compared sample by sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from longtail.core import Prior, Scores, shot_groups
from longtail.core.tensors import as_tensor
from longtail.metrics import Accumulator, Interval
from longtail.metrics.terms import bin_of

_TERM = {"nll": "nll", "ece": "gap"}  # of all others it is `right`


@dataclass(frozen=True, eq=False)
class SampleSet:
    """What the runs of a table are measured on.

    Attributes:
        name: What it is called.
        labels: The true classes.
        num_classes: How many classes there are.
        target: The prior to measure under; None for the samples as they are.
        counts: Training samples of each class, for many, medium and few, if known.
    """

    name: str
    labels: Tensor
    num_classes: int
    target: Prior | None = None
    counts: Tensor | None = None

    @property
    def label_counts(self) -> Tensor:
        """Samples of each class."""
        return torch.bincount(self.labels, minlength=self.num_classes).double()

    def weights(self, key: str) -> Tensor:
        """How much each sample of each class counts for a metric; all samples together one."""
        counts = self.label_counts
        shares = self._shares(key, counts) * (counts > 0)
        return shares / shares.sum() / counts.clamp(min=1)

    def _shares(self, key: str, counts: Tensor) -> Tensor:
        if key in ("many", "medium", "few"):
            return as_tensor(shot_groups(self.counts)[key]).double()  # type: ignore[arg-type]
        if key == "balanced_accuracy":
            return torch.ones_like(counts)
        if key == "accuracy":
            return counts
        return counts if self.target is None else as_tensor(self.target.probs)


@dataclass(frozen=True, eq=False)
class Run:
    """One trained model, measured.

    Attributes:
        method: What it is a run of.
        seed: What tells it from other runs of the method.
        metrics: Every metric with its interval over test samples.
        right: Of each sample, whether it was predicted right.
        nll: Of each sample, −log p(y|x).
        gap: Of each sample, right − confidence with the sign of its bin.
        as_trained: The metrics of the scores as they are; `metrics` itself where no move changed
            them, since they carry the target or nobody knows what they carry.
        moved: Whether the scores were moved to the target, or taken as they are since nobody
            knows what they carry.
        source: Where the scores are from.
    """

    method: str
    seed: str
    metrics: Mapping[str, Interval]
    right: Tensor
    nll: Tensor
    gap: Tensor
    as_trained: Mapping[str, Interval] = field(default_factory=dict)
    moved: bool = True
    source: str = ""

    def terms(self, key: str) -> Tensor:
        """What the metric is a sum of, one number a sample."""
        chosen: Tensor = getattr(self, _TERM.get(key, "right"))
        return chosen

    def is_copy_of(self, other: "Run") -> bool:
        """Whether both gave every sample the same probability."""
        return torch.equal(self.nll, other.nll) and torch.equal(self.right, other.right)


def measured_run(
    scores: Scores, samples: SampleSet, method: str, seed: str = "0", source: str = ""
) -> Run:
    """Measure labelled scores under the target of the set, and beside that as they are.

    Args:
        scores: Of the samples of the set, in their order. They are moved to the target if it is
            known what they carry, and else taken as they are.
        samples: What is measured on.
        method: What it is a run of.
        seed: What tells it from other runs of the method.
        source: Where the scores are from.

    >>> samples = SampleSet("toy", torch.tensor([0, 0, 1]), 2, Prior.uniform(2))
    >>> scores = Scores([[2.0, 1.0], [0.0, 1.0], [0.0, 3.0]], labels=[0, 0, 1])
    >>> run = measured_run(scores, samples, "CE")
    >>> run.metrics["balanced_accuracy"].value, run.right.tolist(), run.moved
    (0.75, [1.0, 0.0, 1.0], False)
    """
    target = samples.target
    known = target is not None and scores.carried is not None
    moved = scores.under(target) if target is not None and known else scores
    sums = _sums(samples)
    terms = sums.add(moved.logits, samples.labels)
    weights = samples.weights("ece")[samples.labels]
    right = torch.from_numpy(terms.right).double()
    # A class that does not count may have infinite ones.
    nll = torch.where(weights > 0, torch.from_numpy(terms.nll), 0.0)
    sign = np.sign(sums.bin_gaps)[bin_of(terms.confidence)]
    gap = torch.from_numpy(sign * (terms.right - terms.confidence))
    metrics = sums.metrics()
    as_trained = metrics
    if target is not None and scores.carried and not scores.carried.is_close(target):
        as_they_are = _sums(samples)
        as_they_are.add(scores.logits, samples.labels)
        as_trained = as_they_are.metrics()
    return Run(method, seed, metrics, right, nll, gap, as_trained, known or target is None, source)


def _sums(samples: SampleSet) -> Accumulator:
    return Accumulator(
        samples.num_classes, samples.target, samples.counts, label_counts=samples.label_counts
    )
