r"""Samples that something is fitted on: labelled, not the test set's, each with what it counts.

Where labels follow the target t a sample of class y counts t(y)/n_y, or t(y)·v_i/Σv over its class
if samples weigh v_i. Classes without samples cannot count, and the others share what the target
gives to them. A weight is a number of repetitions; weights that sum to less than there are samples
are taken for shares, and scaled to one a sample. Then with n_y = Σv the variance of a mean, samples
of each class drawn apart, is Σ_y t(y)² v_y / n_y with the v_y of `stats.class_variances`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import ArrayLike, Floats, Indices, Numbers, as_numpy
from longtail.core.numbers import check_weights
from longtail.core.score_checks import check_softmax


@dataclass(frozen=True, eq=False)
class Validation:
    """Labelled samples that something may be fitted on."""

    logits: Numbers  # of shape (N, C), in the dtype they came in; bfloat16 as float32
    labels: Indices
    carried: Prior | None  # by the logits, if that is known
    prior: Prior  # of these labels, with zeros for absent classes
    classes: tuple[str, ...] | None = None  # so that an error can name them

    def weights_to(self, target: Prior) -> Floats:
        """What each sample counts where labels follow the target, summing to one."""
        return weights_to(target, self.labels, 1 / np.bincount(self.labels)[self.labels])

    @property
    def own_logits(self) -> Floats:
        """That of each sample's label."""
        return self.logits[np.arange(len(self.labels)), self.labels].astype(np.float64)

    def check_possible(self) -> None:
        """A ValueError if the logits of a sample rule its own label out."""
        ruled_out = np.isneginf(self.own_logits)
        if ruled_out.any():
            at = int(ruled_out.argmax())
            raise ValueError(
                f"the validation logits of sample {at} rule out its own label, class "
                f"{self.labels[at]}, and no calibration can mend that; give probabilities to "
                "Scores.from_probs, which floors zeros"
            )


def check_validation(scores: Scores, who: str) -> Validation:
    """The samples, or a ValueError that says why `who` must not be fitted on them."""
    check_softmax(scores, who, "those have measure_odds and posthoc.Thresholds")
    if scores.split == "test":
        raise ValueError(
            f"{who} must not be fitted on split='test': what is chosen on the test set makes its "
            "results look better than they are; fit on validation samples of the training data"
        )
    if scores.labels is None:
        raise ValueError(f"{who} is fitted on labelled scores, but these have no labels")
    if not len(scores):
        raise ValueError(f"{who} needs samples to be fitted on, got none")
    labels = as_numpy(scores.labels)
    prior = Prior.from_labels(labels, scores.num_classes, zeros="keep")
    return Validation(as_numpy(scores.logits), labels, scores.carried, prior, scores.classes)


class Weighted(NamedTuple):
    """Labelled logits with weights."""

    logits: Numbers  # of shape (N, C), in the dtype they came in
    labels: Indices
    shares: Floats  # what each sample counts in its class; those of a class sum to one
    weights: Floats  # what each counts under the target, summing to one
    times: Floats  # as how many samples each counts; one without weights of their own

    @classmethod
    def under(
        cls, target: Prior, logits: Numbers, labels: Indices, within: ArrayLike | None = None
    ) -> Weighted:
        """The samples weighted to a target; `within` says what each counts in its class."""
        times = check_weights(within, len(labels))
        total, most = float(times.sum()), int((times > 0).sum())
        times = times * (most / total) if total < most else times
        totals = np.bincount(labels, times, logits.shape[1])[labels]
        shares = np.divide(times, totals, out=np.zeros_like(times), where=times > 0)
        return cls(logits, labels, shares, weights_to(target, labels, shares), times)

    @property
    def num_classes(self) -> int:
        """How many classes the logits have."""
        return int(self.logits.shape[1])

    def that_count(self) -> Weighted:
        """Without the samples of weight zero."""
        if self.weights.all():
            return self
        at = np.flatnonzero(self.weights)
        return Weighted._make(values[at] for values in self)

    def mean(self, values: Numbers) -> float:
        """The weighted mean of these values, one a sample."""
        return float(self.weights @ values)

    def standard_error(self, values: Numbers) -> float:
        """Of the weighted mean of these values."""
        from longtail.stats import class_variances

        sums, squares = (self._sums(self.times * terms) for terms in (values, np.square(values)))
        counts = self._sums(self.times)
        seen = counts > 0
        variances = class_variances(sums, squares, counts)[seen] / counts[seen]
        return float(np.sqrt((np.square(self._sums(self.weights)[seen]) * variances).sum()))

    @property
    def worth(self) -> float:
        """How many samples drawn alike from all classes tell as much as these (Kish)."""
        counts = self._sums(self.times)
        seen = counts > 0
        return float(1 / (np.square(self._sums(self.weights)[seen]) / counts[seen]).sum())

    def _sums(self, terms: Floats) -> Floats:
        """Over the samples of each class."""
        return np.bincount(self.labels, terms, self.num_classes).astype(np.float64, copy=False)


def weights_to(target: Prior, labels: Indices, shares: Floats) -> Floats:
    """The shares times what the target gives to each class, summing to one."""
    weights = target.probs[labels] * shares
    total = weights.sum()
    if not total > 0:
        raise ValueError(
            "no sample counts: the target prior gives all to classes that have no samples here; "
            "use another target, or samples of its classes"
        )
    return np.asarray(weights / total)


def effective_samples(weights: Floats) -> float:
    """(Σw)² / Σw²: how many equally weighted samples tell as much as these (Kish)."""
    return float(weights.sum() ** 2 / np.square(weights).sum())
