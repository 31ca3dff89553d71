"""The accuracies that are shown: the one that was asked for first, and none of them twice.

    accuracy                of the samples as they are, each counting once
    accuracy_under_target   where labels follow the target
    balanced_accuracy       where all classes count alike

Where two of them are one number, as under the uniform target, only the first is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from longtail.core import Prior

# Which is the headline is decided by the target; the others follow in this order.
ACCURACIES = ("accuracy_under_target", "balanced_accuracy", "accuracy")
GROUPS = ("many", "medium", "few")


def headline_key(target: Prior | None) -> str:
    """The accuracy that was asked for: that under the target, by its own name if it is uniform.

    >>> headline_key(Prior.of([3, 1])), headline_key(Prior.uniform(2)), headline_key(None)
    ('accuracy_under_target', 'balanced_accuracy', 'accuracy')
    """
    if target is None:
        return "accuracy"
    return "balanced_accuracy" if is_uniform(target) else "accuracy_under_target"


def shown_accuracies(shares: Mapping[str, npt.ArrayLike], target: Prior | None) -> list[str]:
    """The accuracies from top to bottom: the headline, and those that differ from it.

    Args:
        shares: What each class counts for in each accuracy.
        target: Where labels follow this prior; None for the samples as they are.

    >>> half = np.array([0.5, 0.5])
    >>> shares = {"accuracy": half, "balanced_accuracy": half}
    >>> shown_accuracies(shares | {"accuracy_under_target": [0.75, 0.25]}, Prior.of([3, 1]))
    ['accuracy_under_target', 'balanced_accuracy']
    >>> shown_accuracies(shares | {"accuracy_under_target": half}, Prior.uniform(2))
    ['balanced_accuracy']
    """
    first = headline_key(target)
    return distinct_accuracies(shares, sorted(ACCURACIES, key=lambda key: key != first))


def distinct_accuracies(shares: Mapping[str, npt.ArrayLike], order: Sequence[str]) -> list[str]:
    """Those of `order` in which classes count otherwise than in all before.

    Args:
        shares: What each class counts for in each accuracy.
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
