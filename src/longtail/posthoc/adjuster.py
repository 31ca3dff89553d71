r"""What every adjuster is: a function from Scores to Scores, so that what is carried moves along.

All of ours are affine in each class's logit,

    f_y ↦ scale_y · f_y + shift_y,

which is what lets them be folded into the linear layer that made the logits.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from longtail.core import Prior, Scores
from longtail.core.tensors import as_kind_of, as_tensor, wide_dtype


class Adjuster(Protocol):
    """Takes scores and returns adjusted ones that say what they carry."""

    def __call__(self, scores: Scores) -> Scores:
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

    scale: Tensor
    shift: Tensor
    carried: Prior | None


class AffineAdjuster(ABC):
    """An adjuster that scales and shifts each class's logit."""

    @abstractmethod
    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """What to do to logits of that many classes that carry `carried`, or a ValueError."""

    def __call__(self, scores: Scores) -> Scores:
        """The adjusted scores."""
        step = self.affine(scores.carried, scores.num_classes)
        logits = as_tensor(scores.logits)
        wide, device = wide_dtype(logits.dtype), logits.device
        moved = logits.to(wide) * step.scale.to(device, wide) + step.shift.to(device, wide)
        kept = as_kind_of(moved.to(logits.dtype), scores.logits)
        return replace(scores, logits=kept, carried=step.carried)
