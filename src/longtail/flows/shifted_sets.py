r"""What becomes of a model where test labels shift: the ten sets of LADE's tables 6 and 9.

A balanced test set is made long-tailed, along the training counts (forward) or against them
(backward), the largest class 50, 25, 10, 5 or 2 times the smallest. With p_t the prior of such a
set, recalls ρ_y of all test samples give the accuracy that is to be expected there,

    Σ_y p_t(y) · ρ_y,

without the chance of which samples are drawn. Only to estimate p_t, without labels, is the set
itself drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import ArrayLike, Floats, Indices, as_numpy
from longtail.core.draws import Draws
from longtail.data import shifted_subset
from longtail.metrics import Interval, recalls
from longtail.shift.estimate import estimate_prepared, estimate_prior
from longtail.shift.prepared import Prepared, prepare
from longtail.stats import share_interval

if TYPE_CHECKING:
    from longtail.data.subsets import Direction

RATIOS = (50, 25, 10, 5, 2)
_BALANCED = 1.5  # the largest class over the smallest, up to which a test set is taken as balanced
_MOST = 2**23  # numbers that an estimate looks at


@dataclass(frozen=True)
class ShiftedSet:
    """Accuracy where labels follow the prior of one shifted set, of the same scores each time.

    Where it is not known what the scores carry they are not moved, and two of these are None.
    """

    direction: Direction
    ratio: int
    samples: int  # of the set
    as_trained: Interval  # the scores as they are
    known: Interval | None  # moved to the prior of the set: PC Softmax
    estimated: Interval | None  # moved to what is estimated from its samples without their labels
    distance: float | None  # total variation between that estimate and the prior of the set


def shifted_sets(
    test: Scores | None, counts: ArrayLike, validation: Scores | None = None, seed: int = 0
) -> tuple[ShiftedSet, ...]:
    """The sets that a balanced test part has samples enough for, as the paper orders them.

    There are none without one, or where it is not balanced. Validation scores of the same model are
    for the estimate, if they say what they carry; the seed decides which samples are drawn.

    >>> labels = np.arange(40) % 4
    >>> scores = Scores(3 * np.eye(4)[labels], labels, carried=[8, 4, 2, 1])
    >>> [(each.direction, each.ratio, each.samples) for each in shifted_sets(scores, [8, 4, 2, 1])]
    [('forward', 10, 17), ('forward', 5, 20), ('forward', 2, 28),
     ('backward', 2, 28), ('backward', 5, 20), ('backward', 10, 17)]
    """
    if test is None:
        return ()
    labels = as_numpy(test.labels)
    available = np.bincount(labels, minlength=test.num_classes)
    if available.max() > _BALANCED * available.min() or test.num_classes < 2:
        return ()
    order = Draws(seed).permutation(len(labels))
    judge = _Judge(test, available.astype(np.float64), as_numpy(recalls(test)))
    estimate = _Estimate.of(test, counts, validation)
    made = []
    for direction, ratio in _cases():
        if ratio > available.min():  # the smallest class would have no sample
            continue
        at = order[as_numpy(shifted_subset(labels[order], counts, ratio, direction))]
        prior = Prior.of(np.bincount(labels[at], minlength=test.num_classes))
        moved_to = None if estimate is None else estimate.prior(at)
        made.append(
            ShiftedSet(
                direction,
                ratio,
                samples=len(at),
                as_trained=judge.accuracy(prior),
                known=None if test.carried is None else judge.accuracy(prior, moved_to=prior),
                estimated=None if moved_to is None else judge.accuracy(prior, moved_to=moved_to),
                distance=None
                if moved_to is None
                else float(abs(moved_to.probs - prior.probs).sum() / 2),
            )
        )
    return tuple(made)


def _cases() -> Iterator[tuple[Direction, int]]:
    yield from (("forward", ratio) for ratio in RATIOS)
    yield from (("backward", ratio) for ratio in reversed(RATIOS))


@dataclass(frozen=True, eq=False)
class _Judge:
    """Measures the test scores, moved or not, under a prior."""

    test: Scores
    available: Floats  # samples of each class
    as_trained: Floats  # recalls

    def accuracy(self, prior: Prior, moved_to: Prior | None = None) -> Interval:
        """With its 95 % interval over test samples."""
        recall = self.as_trained
        if moved_to is not None:
            recall = as_numpy(recalls(self.test.under(moved_to)))
        ends = share_interval(recall * self.available, self.available, prior.probs)
        return Interval(float(prior.probs @ recall), *ends)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Estimates the prior of some of the test samples; validation is prepared once for all sets."""

    test: Scores  # without labels
    validation: Prepared | None

    @classmethod
    def of(cls, test: Scores, counts: ArrayLike, validation: Scores | None) -> _Estimate | None:
        """None where it is not known what the scores carry."""
        if test.carried is None:
            return None
        unlabelled = replace(test, labels=None, split=None, counts=counts)
        try:
            if validation is not None and validation.carried is not None:
                return cls(unlabelled, prepare(validation, test.num_classes))
        except (ValueError, RuntimeError):  # too few to say anything
            pass
        return cls(unlabelled, None)

    def prior(self, at: Indices) -> Prior | None:
        """Of the samples at these positions, which are in random order; None if it cannot be."""
        scores = self.test.take(at[: max(1, _MOST // self.test.num_classes)])
        try:
            if self.validation is None:
                return estimate_prior(scores, intervals=False).prior
            return estimate_prepared(scores, self.validation, intervals=False).prior
        except (ValueError, RuntimeError):
            return None
