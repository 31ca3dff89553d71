"""The classifier's options, checked before anything is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy.typing as npt

from longtail.core import Prior, PriorLike
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes
from longtail.posthoc.tau.choice import Criterion

Target: TypeAlias = str | PriorLike | Mapping[Any, float]
Tau: TypeAlias = float | Literal["auto"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias_corrected"] | None
Carried: TypeAlias = PriorLike | Literal["train", "measure"]

_TARGETS = ("uniform", "prior", "estimate")


class Options(NamedTuple):
    """What `LogitAdjustedClassifier` was given; the names are those of its arguments."""

    tau: Tau
    target: Target
    cv: Any
    criterion: Criterion
    calibration: Calibration
    carried: Carried
    n_jobs: int | None

    @classmethod
    def of(cls, classifier: Any) -> Options:
        """Those of a classifier, or a ValueError for the first that is none."""
        options = cls(*(getattr(classifier, name) for name in cls._fields))
        options.check()
        return options

    def check(self) -> None:
        """A ValueError for the first option that is none."""
        if isinstance(self.tau, str) and self.tau != "auto":
            raise ValueError(f'tau must be "auto" or a number, got {self.tau!r}')
        if not isinstance(self.tau, str):
            check_number(self.tau, "tau")
        if isinstance(self.target, str) and self.target not in _TARGETS:
            raise ValueError(
                'target must be "uniform", "prior" or "estimate", or one probability or count a '
                f"class, got {self.target!r}"
            )
        if self.criterion not in get_args(Criterion):
            raise ValueError(
                f"criterion must be one of {', '.join(get_args(Criterion))}, got {self.criterion!r}"
            )
        if self.calibration not in (None, "auto", "temperature", "bias_corrected"):
            raise ValueError(
                'calibration must be None, "auto", "temperature" or "bias_corrected", '
                f"got {self.calibration!r}"
            )
        if isinstance(self.carried, str) and self.carried not in ("train", "measure"):
            raise ValueError(
                'carried must be "train" or "measure", or one probability or count a class, '
                f"got {self.carried!r}"
            )


def target_prior(target: Target, train: Prior, classes: npt.NDArray[Any]) -> Prior | None:
    """The prior meant; None if it is to be estimated."""
    if isinstance(target, str):
        return {"uniform": Prior.uniform(len(classes)), "prior": train}.get(target)
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
