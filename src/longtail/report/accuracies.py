"""The accuracies a page shows: by one name each, the one that was asked for first.

    accuracy                of the samples as they are, each counting once
    accuracy_under_target   where labels follow the target
    balanced_accuracy       where all classes count alike

Where two of them are one number, as under the uniform target, there is one row of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.metrics import Accumulator

# Which is the headline is decided by the target; the others follow in this order.
ACCURACIES = {
    "accuracy_under_target": "accuracy under the target",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy, samples as they are",
}
GROUPS = {name: f"{name}-shot classes" for name in ("many", "medium", "few")}
HEADLINES = {
    "accuracy": "Accuracy",
    "accuracy_under_target": "Accuracy under the target",
    "balanced_accuracy": "Balanced accuracy",
}


def headline_key(target: Prior | None) -> str:
    """The accuracy that was asked for: that under the target, by its own name if it is uniform.

    >>> headline_key(Prior.of([3, 1])), headline_key(Prior.uniform(2)), headline_key(None)
    ('accuracy_under_target', 'balanced_accuracy', 'accuracy')
    """
    if target is None:
        return "accuracy"
    return "balanced_accuracy" if is_uniform(target) else "accuracy_under_target"


def shown_accuracies(tally: Accumulator) -> dict[str, str]:
    """The names of the accuracies from top to bottom: the headline, and those that differ from it.

    Classes count otherwise in each than in those above; two that are always equal have one row.

    >>> sums = Accumulator(2, Prior.of([3, 1]))
    >>> _ = sums.add([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> shown_accuracies(sums)
    {'accuracy_under_target': 'accuracy under the target', 'balanced_accuracy': 'balanced accuracy'}
    >>> shown_accuracies(sums.weighted_to(Prior.uniform(2)))
    {'balanced_accuracy': 'balanced accuracy'}
    """
    first = headline_key(tally.target)
    order = sorted(ACCURACIES, key=lambda key: key != first)
    return {key: ACCURACIES[key] for key in distinct_accuracies(tally.class_shares, order)}


def distinct_accuracies(
    shares: Mapping[str, npt.NDArray[np.float64]], order: Sequence[str]
) -> list[str]:
    """Those of `order` in which classes count otherwise than in all before.

    Args:
        shares: What each class counts for in each accuracy, as an `Accumulator` has them.
        order: Of two that are one number the first stays.
    """
    shown: list[str] = []
    for key in order:
        if key in shares and not any(
            np.allclose(shares[key], shares[above], rtol=1e-9, atol=0) for above in shown
        ):
            shown.append(key)
    return shown


def is_uniform(target: Prior | None) -> bool:
    """Whether the target is known and all classes count alike under it."""
    return target is not None and target.is_close(Prior.uniform(target.num_classes))
