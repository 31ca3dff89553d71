r"""What every adjuster is: a function from Scores to Scores, so that what is carried moves along.

All of ours are affine in each class's logit,

    f_y ↦ scale_y · f_y + shift_y,

which is what lets them be folded into the linear layer that made the logits. Scale and shift are
worked out once for all scores that carry the same prior; then logits are adjusted in their own
kind, a torch tensor on its device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from longtail.core import Prior, Scores
from longtail.core.arrays import ArrayT, is_torch, to_kind
from longtail.core.retarget import scaled_and_shifted

Floats: TypeAlias = npt.NDArray[np.float64]


class Adjuster(Protocol):
    """Takes scores and returns adjusted ones that say what they carry."""

    def __call__(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores."""
        ...


@dataclass(frozen=True, eq=False)
class Affine:
    """What an adjuster does to logits, and what they carry afterwards.

    Attributes:
        scale: One factor a class, float64.
        shift: What is then added, one number a class, float64; -inf rules the class out.
        carried: The prior the result carries, or None if that is not known.
    """

    scale: Floats
    shift: Floats
    carried: Prior | None

    def __call__(self, logits: ArrayT) -> ArrayT:
        """The adjusted logits, in their kind and dtype; torch and JAX can differentiate and trace.

        >>> Affine(np.array([0.5, 0.5]), np.array([0.0, 1.0]), None)(np.array([[4.0, 2.0]]))
        array([[2., 2.]])
        """
        return scaled_and_shifted(logits, self.scale, self.shift)

    def then(self, step: Affine) -> Affine:
        """This and then another, as one."""
        return Affine(self.scale * step.scale, self.shift * step.scale + step.shift, step.carried)


class AffineAdjuster(ABC):
    """An adjuster that scales and shifts each class's logit."""

    @abstractmethod
    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """What to do to logits of that many classes that carry `carried`, or a ValueError."""

    def __call__(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores."""
        last: Chain | None = vars(self).get("_last")
        if last is None or not last.suit(scores):
            last = vars(self)["_last"] = Chain.of([self], scores)
        return last.applied(scores)


@dataclass(frozen=True, eq=False)
class Chain:
    """What a row of adjusters does to scores that carry a certain prior.

    Attributes:
        affine: What each does, in the order in which they are applied.
        carried: What the scores carry before.
        num_classes: How many classes they have.
    """

    affine: tuple[Affine, ...]
    carried: Prior | None
    num_classes: int

    @classmethod
    def of(cls, adjusters: Sequence[AffineAdjuster], scores: Scores) -> Chain:
        """For scores like these, or a ValueError by the adjuster that refuses them."""
        carried, steps = scores.carried, []
        for adjuster in adjusters:
            steps.append(adjuster.affine(carried, scores.num_classes))
            carried = steps[-1].carried
        return cls(tuple(steps), scores.carried, scores.num_classes)

    def suit(self, scores: Scores) -> bool:
        """Whether these are scores of that prior and of as many classes."""
        if self.carried is None or scores.carried is None or self.carried is scores.carried:
            return self.carried is scores.carried and self.num_classes == scores.num_classes
        return np.array_equal(self.carried.log, scores.carried.log)

    def applied(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores."""
        if scores.logits.dtype.itemsize > 2:
            return scores._moved(*self._moved(scores))
        with np.errstate(over="ignore"):  # half precision may overflow, and is looked at again
            logits, carried = self._moved(scores)
        return replace(scores, logits=logits, carried=carried)

    def _moved(self, scores: Scores[ArrayT]) -> tuple[ArrayT, Prior | None]:
        logits, carried = scores.logits, scores.carried
        for step in self.affine:
            logits, carried = step(logits), step.carried
        return logits, carried


def like(values: npt.NDArray[Any], example: ArrayT) -> ArrayT:
    """The values in the kind and dtype of the example, and on its device."""
    same_kind = to_kind(values, example)
    if is_torch(example):
        return cast(ArrayT, same_kind.to(example.dtype))
    return cast(ArrayT, same_kind.astype(example.dtype))
