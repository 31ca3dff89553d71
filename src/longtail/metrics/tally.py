r"""Every metric of `evaluate` from one pass over blocks of samples, with intervals.

What is kept are sums: of each class its samples, its hits, its NLL and Brier score and their
squares, and the cells of the calibration errors. Samples of class y count w_y, so with n_y samples

    mean = Σ_y w_y Σ_{i: y_i = y} term_i,        var(mean) = Σ_y w_y² · n_y · var_y(term),

the variance of a mean over samples drawn anew within each class (stratified), where var_y leans on
the other classes as far as class y has few samples (`class_variance`). Accuracies have Wilson's
interval with that variance. The hits of a class that is drawn anew are binomial, so what else is
made of recalls gets its interval by drawing those, of recalls that one sample of the mean recall
was added to, which is kept off 0 and 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core import Prior, shot_groups
from longtail.core.arrays import ArrayLike
from longtail.core.prior import check_same_classes
from longtail.core.tensors import as_tensor, count_tensor
from longtail.metrics.calibration import add_every_class, add_gaps, inner_edges
from longtail.metrics.class_variance import NORMAL, class_variances, share_interval
from longtail.metrics.recall import NO_RECALL

_BINS = 20
_DRAWS = 1000
_TOO_FEW = 3  # samples of the worst class, for an interval


@dataclass(frozen=True)
class Measured:
    """A metric with the ends of its 95 % interval, which are None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Terms(NamedTuple):
    """What each sample of a block adds: whether it was right, its log-loss, its Brier score."""

    right: Tensor
    nll: Tensor
    brier: Tensor


class Tally:
    """Sums over blocks of samples from which the metrics follow: `add` blocks, then `metrics`.

    Args:
        label_counts: How many of the samples to come are of each class.
        target: Where labels follow this prior; None for the samples as they are.
        train_counts: Training samples of each class, for many, medium and few.

    >>> tally = Tally([3, 1])
    >>> tally.add(torch.tensor([[3.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0])).right
    tensor([True, True])
    >>> tally.add(torch.tensor([[1.0, 0.0], [1.5, 0.0]]), torch.tensor([0, 1])).right
    tensor([ True, False])
    >>> tally.metrics()["nll"].value
    0.548
    """

    def __init__(
        self,
        label_counts: ArrayLike,
        target: Prior | None = None,
        train_counts: ArrayLike | None = None,
    ) -> None:
        self.counts = count_tensor(label_counts).double()
        self.target = target
        classes = len(self.counts)
        if target is not None:
            check_same_classes(classes, target, "label_counts have", "the target")
        self.groups: Mapping[str, ArrayLike] = (
            {} if train_counts is None else shot_groups(count_tensor(train_counts, classes))
        )
        self.added = torch.zeros_like(self.counts)
        weight = self.counts if target is None else as_tensor(target.probs) * (self.counts > 0)
        if target is not None and self.counts.any() and not weight.sum() > 0:
            raise ValueError(
                "the target gives all its weight to classes of which there are no samples here, so "
                "nothing can be measured under it; use another target, or samples of its classes"
            )
        # Of absent classes there is no sample to count.
        self.weight = (weight / weight.sum() / self.counts).nan_to_num(nan=0.0, posinf=0.0)
        self.edges = inner_edges(_BINS)
        self.hits, self.nll, self.nll_squares, self.brier, self.brier_squares = torch.zeros(
            5, classes, dtype=torch.float64, device="cpu"
        )
        self.gaps, self.gap_squares = torch.zeros(2, _BINS, dtype=torch.float64, device="cpu")
        self.class_gaps, self.true_gaps = torch.zeros(
            2, classes * _BINS, dtype=torch.float64, device="cpu"
        )

    def add(self, logits: Tensor, labels: Tensor) -> Terms:
        """Count a block in; what each of its samples added."""
        rows, known = logits.to("cpu", torch.float64), labels.cpu()
        claimed = torch.softmax(rows, dim=1)
        right = rows.argmax(dim=1) == known
        nll = F.cross_entropy(rows, known, reduction="none")
        own = claimed.gather(1, known.unsqueeze(1)).squeeze(1)
        brier = claimed.square().sum(dim=1) - 2 * own + 1
        confidence, weights = claimed.amax(dim=1), self.weight[known]
        bins = torch.bucketize(confidence, self.edges)
        gap = weights * (right.double() - confidence)
        self.added += torch.bincount(known, minlength=len(self.added))
        self.hits += torch.bincount(known[right], minlength=len(self.hits))
        for sums, terms in (
            (self.nll, nll),
            (self.nll_squares, nll.square()),
            (self.brier, brier),
            (self.brier_squares, brier.square()),
        ):
            sums += torch.bincount(known, terms, minlength=len(sums))
        add_gaps(self.gaps, bins, gap)
        add_gaps(self.gap_squares, bins, gap.square())
        add_gaps(self.true_gaps, known * _BINS + bins, gap)
        add_every_class(self.class_gaps, claimed, known, weights, self.edges)
        return Terms(right, nll, brier)

    def metrics(self, seed: int = 0) -> dict[str, Measured]:
        """What `evaluate` returns, each with its interval where there is one.

        Raises ValueError unless all samples that `label_counts` spoke of were added, and no others.
        """
        self.check_complete()
        recall = self.hits / self.counts
        accuracies, curved = self._accuracies(), self._curved(recall)
        seen = self.counts > 0
        worth = float(seen.sum() ** 2 / (1 / self.counts[seen]).sum())  # samples (Kish)
        # As for accuracies: where all are right, or all wrong, others need not be.
        usual = (worth * recall.nanmean().nan_to_num(0.5) + 0.5) / (worth + 1)
        redrawn = torch.binomial(
            self.counts.expand(_DRAWS, -1),
            ((self.hits + usual) / (self.counts + 1)).expand(_DRAWS, -1),
            torch.Generator().manual_seed(seed),
        )
        drawn = self._curved(redrawn / self.counts)
        measured = accuracies | {
            name: _between(value, drawn[name]) for name, value in curved.items()
        }
        worst = self.counts[recall == curved["worst_class"]]
        if float(worst.max()) < _TOO_FEW:  # one or two samples say nothing of their class
            measured["worst_class"] = Measured(float(curved["worst_class"]))
        classes = len(self.counts)
        measured["nll"] = self._mean(self.nll, self.nll_squares)
        measured["brier"] = self._mean(self.brier, self.brier_squares)
        gaps = float(self.gaps.abs().sum()), float(self.gap_squares.sum())
        measured["ece"] = _around(*gaps, most=1.0)
        measured["classwise_ece"] = Measured(float(self.class_gaps.abs().sum()) / classes)
        measured["classwise_ece_paper"] = Measured(float(self.true_gaps.abs().sum()) / classes)
        measured["absent_classes"] = Measured(float((self.counts == 0).sum()))
        return measured

    def check_complete(self) -> None:
        """Raise unless as many samples of each class were added as `label_counts` says."""
        wrong = (self.added != self.counts).nonzero().flatten()
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"label_counts says that {int(self.counts[at])} samples of class {at} come, but "
                f"{int(self.added[at])} were added; give the counts of the labels that are added, "
                "such as class_counts(labels, num_classes)"
            )

    @property
    def class_shares(self) -> dict[str, Tensor]:
        """What each class counts for in each accuracy, all classes together one.

        Classes without samples count for nothing, and what counts no class is left out: accuracy
        under a target where there is none, a group without samples.
        """
        present = (self.counts > 0).double()
        shares = {
            "accuracy": self.counts,
            "accuracy_under_target": None if self.target is None else self.weight * self.counts,
            "balanced_accuracy": present,
        } | {name: present * as_tensor(mask).double() for name, mask in self.groups.items()}
        return {
            name: share / share.sum()
            for name, share in shares.items()
            if share is not None and share.sum() > 0
        }

    def _accuracies(self) -> dict[str, Measured]:
        """Weighted means of recalls, each with its interval; none where no class counts."""
        shares = self.class_shares
        names = ("accuracy", "accuracy_under_target", "balanced_accuracy", *self.groups)
        return {name: self._accuracy(shares.get(name)) for name in names}

    def _curved(self, recall: Tensor) -> dict[str, Tensor]:
        """What else is made of recalls, of one set or many: the classes are the last axis."""
        seen = recall[..., self.counts > 0]
        return {
            "geometric_mean": torch.where(seen == 0, NO_RECALL, seen).log().mean(dim=-1).exp(),
            "worst_class": seen.amin(dim=-1),
        }

    def _accuracy(self, shares: Tensor | None) -> Measured:
        if shares is None:
            return Measured(None)
        value = float((self.hits / self.counts).nan_to_num(0.0) @ shares)
        return Measured(value, *share_interval(self.hits, self.counts, shares))

    def _mean(self, sums: Tensor, squares: Tensor) -> Measured:
        seen = self.weight > 0  # a class that does not count may have an infinite term
        n, total, weight = self.counts[seen], sums[seen], self.weight[seen]
        value = float((weight * total).sum())
        if n.sum() < 2:  # of one sample nobody knows how much another would differ
            return Measured(value)
        variance = n * class_variances(total, squares[seen], n)
        return _around(value, float((weight.square() * variance).sum()))


def _between(value: Tensor, drawn: Tensor) -> Measured:
    """The value, between the quantiles of what was drawn."""
    low, high = torch.quantile(drawn, drawn.new_tensor([0.025, 0.975])).tolist()
    # The worst of many classes drawn anew is worse than the worst: its interval reaches up to it.
    return Measured(float(value), min(low, float(value)), max(high, float(value)))


def _around(value: float, variance: float, most: float = inf) -> Measured:
    """The value with a normal interval; none of these metrics can be negative."""
    if value == inf:  # a class that was ruled out occurs
        return Measured(value)
    reach = NORMAL * variance**0.5
    return Measured(value, max(0.0, value - reach), min(most, value + reach))
