"""The classifier's options, checked before anything is fitted."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from longtail.core import PriorLike
from longtail.core.numbers import check_number
from longtail.integrations.sklearn.targets import Target, check_target
from longtail.posthoc.tau.choice import Criterion

Tau: TypeAlias = float | Literal["auto"]
Calibration: TypeAlias = Literal["auto", "temperature", "bias_corrected"] | None
Carried: TypeAlias = PriorLike | Literal["train", "measure"]


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
        check_target(self.target)
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
