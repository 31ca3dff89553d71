"""The prior that a classifier is asked to move to, from what a user says."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

from longtail.core import Prior, PriorLike
from longtail.core.prior import check_same_classes

Target: TypeAlias = str | PriorLike | Mapping[Any, float]

_NAMES = ("uniform", "prior", "estimate")


def check_target(target: Target) -> None:
    """A ValueError for a name that is none."""
    if isinstance(target, str) and target not in _NAMES:
        raise ValueError(
            'target must be "uniform", "prior" or "estimate", or one probability or count a class, '
            f"got {target!r}"
        )


def target_prior(target: Target, train: Prior, classes: npt.NDArray[Any]) -> Prior | None:
    """The prior meant; None if it is to be estimated."""
    if isinstance(target, str):
        known = {"uniform": Prior.uniform(len(classes)), "prior": train}
        return known.get(target)
    if isinstance(target, Mapping):
        target = _in_order(target, classes)
    goal = Prior.of(target, zeros="keep")
    check_same_classes(len(classes), goal, "the training labels have", "target")
    return goal


def _in_order(target: Mapping[Any, float], classes: npt.NDArray[Any]) -> list[float]:
    """The numbers of a mapping from labels, in the order of the classes."""
    labels = classes.tolist()
    if set(target) != set(labels):
        missing = [label for label in labels if label not in target][:10]
        unknown = [label for label in target if label not in labels][:10]
        raise ValueError(
            "target must have a number for every label of the training set and no other; "
            f"missing: {missing}, unknown: {unknown}"
        )
    return [float(target[label]) for label in labels]
