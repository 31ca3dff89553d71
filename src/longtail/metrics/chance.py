"""Whether scores can be of these labels at all.

A model that learned anything is above chance in balanced accuracy, and, unless it was trained to
treat classes alike, right more often than one that always answers with the largest class. Where it
is not, the classes are in another order, a column is no class, or the labels are of other samples:
nothing that is measured on such scores means anything.
"""

from dataclasses import dataclass

import numpy as np

from longtail.metrics.accumulator import Accumulator
from longtail.metrics.probabilities import sums_of
from longtail.metrics.recall import mean_recall
from longtail.metrics.samples import LabelsLike, Logits
from longtail.stats import NORMAL

_TIMES_CHANCE, _ABOVE_CHANCE = 3.0, 0.05  # nearer than both is near chance


@dataclass(frozen=True)
class Sanity:
    """How scores do beside those of no model."""

    balanced_accuracy: float  # after
    chance: float  # balanced accuracy of always giving one answer
    accuracy: float  # before, of the samples as they are
    largest_class: float  # its share among them: the accuracy of always answering it
    near_chance: bool  # of balanced accuracy
    below_largest_class: bool  # of accuracy, by more than noise
    result_accuracy: float  # after, of the samples as they are
    has_lost: bool  # accuracy, by more than noise, and what it was done for did not rise


def sanity(
    model: Logits | Accumulator, result: Logits | Accumulator, labels: LabelsLike = None
) -> Sanity:
    """Of a model's scores beside the largest class, and of what came of them beside chance.

    Both are labelled scores, accumulators, or logits with the same labels.

    >>> sums = Accumulator(2)
    >>> _ = sums.add([[0.0, 2.0]] * 10, [0] * 8 + [1] * 2)
    >>> checked = sanity(sums, sums)
    >>> checked.near_chance, checked.below_largest_class
    (True, True)
    """
    model, result = sums_of(model, labels), sums_of(result, labels)
    samples = float(result.samples.sum())
    balanced, chance = mean_recall(result.recalls), 1 / int((result.samples > 0).sum())
    accuracy, largest = float(model.right.sum()) / samples, float(result.samples.max()) / samples
    noise = NORMAL * (accuracy * (1 - accuracy) / samples) ** 0.5
    after = float(result.right.sum()) / samples
    shares = result.class_shares
    goal = shares.get("accuracy_under_target", shares["balanced_accuracy"])
    aim, before = (float(np.nan_to_num(sums.recalls) @ goal) for sums in (result, model))
    return Sanity(
        balanced_accuracy=balanced,
        chance=chance,
        accuracy=accuracy,
        largest_class=largest,
        near_chance=chance < 1 and balanced < min(_TIMES_CHANCE * chance, chance + _ABOVE_CHANCE),
        below_largest_class=chance < 1 and accuracy + noise < largest,
        result_accuracy=after,
        has_lost=after + noise < accuracy and aim <= before,
    )
