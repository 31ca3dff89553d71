r"""Whether scores can be of the labels beside them at all.

A model that learned anything is above chance in balanced accuracy, and, unless it was trained to
treat classes alike, right more often than one that always answers with the largest class. Where it
is not, the classes are in another order, a column is no class, or the labels are of other samples:
nothing that is measured on such scores means anything.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longtail.metrics.accumulator import Accumulator
from longtail.metrics.recall import mean_recall
from longtail.stats import NORMAL

_TIMES_CHANCE, _ABOVE_CHANCE = 3.0, 0.05  # nearer than both is near chance


@dataclass(frozen=True)
class Sanity:
    """How scores do beside those of no model.

    Attributes:
        balanced_accuracy: Of the scores.
        chance: Balanced accuracy of always giving one answer.
        accuracy: Of the samples as they are.
        largest_class: Share of the largest class among them: the accuracy of always answering it.
        near_chance: Whether balanced accuracy is near chance.
        below_largest_class: Whether accuracy is below the largest class, by more than noise.
        result_accuracy: Accuracy after, of the samples as they are.
        has_lost: Whether what was done lost accuracy, by more than noise, and the accuracy that it
            was done for did not rise.
    """

    balanced_accuracy: float
    chance: float
    accuracy: float
    largest_class: float
    near_chance: bool
    below_largest_class: bool
    result_accuracy: float
    has_lost: bool

    def as_json(self) -> dict[str, Any]:
        """The same by name."""
        return asdict(self)


def sanity(model: Accumulator, result: Accumulator) -> Sanity:
    """Of a model's scores, beside the largest class, and what came of them, beside chance.

    Args:
        model: Of the scores as the model gives them.
        result: Of the same samples after something was done, or the same sums.

    >>> sums = Accumulator(2)
    >>> _ = sums.add([[0.0, 1.0]] * 10, [0] * 8 + [1] * 2)
    >>> checked = sanity(sums, sums)
    >>> checked.near_chance, checked.below_largest_class
    (True, True)
    """
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
