"""Choosing τ: exactly by accuracy, by a proper score, or by calibration error (LA §6.2).

Here is what an adjuster file holds of a choice; how it is made is imported where something is
fitted, so that loading and applying an adjuster stays quick.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Criterion: TypeAlias = Literal["accuracy_under_target", "nll", "brier", "ece"]


@dataclass(frozen=True)
class TauChoice:
    """A τ, and what speaks for it."""

    tau: float  # between the optimum and 1
    criterion: Criterion
    value: float  # of the criterion at τ under the target, on the samples it was chosen on
    standard_error: float  # of that value, if samples of each class were drawn again
    optimum: float  # the τ at which the criterion is best on these samples; 1 if none is better
    trust: float  # how far from 1 towards the optimum τ was let go: 0 not at all, 1 all the way
    low: float | None  # of the optimum's 95 % interval, by the error that trust follows from;
    high: float | None  # None if there is none, as for "ece" or where nothing is known
    effective_samples: float  # how many equally weighted samples tell as much as these (Kish)
    effective_tail: float | None  # of the rarer half of the classes; None if that is not known

    @property
    def is_determined(self) -> bool:
        """Whether the samples had more to say about τ than that it should be near 1."""
        return self.trust >= 0.5
