r"""What every adjuster is: a function from Scores to Scores, so that what is carried moves along.

All of ours are affine in each class's logit, f_y ↦ s_y f_y + b_y, so a row of them is too,

    s'_y (s_y f_y + b_y) + b'_y = s'_y s_y · f_y + (s'_y b_y + b'_y),

and with f = W x + w₀ the whole folds into the linear layer that made the logits: row y of W times
the scale, w₀ times the scale plus the shift. Scale and shift are worked out once for all scores
that carry the same prior; then logits are adjusted in their own kind, a torch tensor on its device.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, overload

import numpy as np

from longtail.core import Prior, PriorLike, Scores
from longtail.core.arrays import ArrayT, Floats, as_numpy, like
from longtail.core.prior import check_same_classes
from longtail.core.retarget import scaled_and_shifted
from longtail.core.score_checks import check_softmax
from longtail.core.tracing import constant_when_traced

if TYPE_CHECKING:
    from torch import nn


class Adjuster(Protocol):
    """Takes scores and returns adjusted ones that say what they carry."""

    def __call__(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores."""
        ...


@dataclass(frozen=True, eq=False)
class Affine:
    """What an adjuster does to logits, and what they carry afterwards."""

    scale: Floats  # one factor a class
    shift: Floats  # what is then added; -inf rules the class out
    carried: Prior | None  # by the result, or None if that is not known

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale).all() and (self.shift < np.inf).all()):
            raise ValueError(
                f"scales must be finite and shifts below +inf, got {self.scale.tolist()!s:.80} and "
                f"{self.shift.tolist()!s:.80}; a parameter of the adjuster is too large or too "
                "small: fit it again"
            )

    def __call__(self, logits: ArrayT) -> ArrayT:
        """The adjusted logits, in their kind and dtype; torch and JAX can differentiate and trace.

        >>> Affine(np.array([0.5, 0.5]), np.array([0.0, 1.0]), None)(np.array([[4.0, 2.0]]))
        array([[2., 2.]])
        """
        return scaled_and_shifted(logits, self.scale, self.shift)


class _OfTheClass:
    """A classmethod that an instance refuses, because it would not see the instance's values."""

    def __init__(self, method: classmethod[object, ..., object]) -> None:
        self._method = method

    def __get__(self, instance: object, owner: type) -> Callable[..., object]:
        if instance is None:
            return self._method.__get__(None, owner)
        name = f"{owner.__name__}.{self._method.__name__}"

        def refuse(*args: object, **options: object) -> NoReturn:
            raise TypeError(
                f"{name} makes a new adjuster and would ignore the values of this one; call it on "
                f"the class, with the values that it needs: {name}(scores, ...)"
            )

        return refuse


class AffineAdjuster(ABC):
    """An adjuster that scales and shifts each class's logit. `fit` is called on the class only."""

    def __init_subclass__(cls) -> None:
        if isinstance(fit := vars(cls).get("fit"), classmethod):
            type.__setattr__(cls, "fit", _OfTheClass(fit))

    @abstractmethod
    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """What to do to logits of that many classes that carry `carried`, or a ValueError."""

    def carried_before(self, after: Prior | None) -> Prior | None:
        """What logits must carry so that they carry `after` next; None if that does not follow."""
        return None

    def __call__(self, scores: Scores[ArrayT]) -> Scores[ArrayT]:
        """The adjusted scores."""
        if scores.family != "softmax":  # which costs nothing for a single row
            who = f"an adjuster such as {type(self).__name__}"
            check_softmax(scores, who, "yes/no labels are moved by scores.under(odds)")
        step = self._step(scores.carried, scores.num_classes)
        return scores._moved(step(scores.logits), step.carried)

    @constant_when_traced
    def _step(self, carried: Prior | None, num_classes: int) -> Affine:
        """What to do to logits, which is not worked out again for others that carry the same."""
        last: tuple[Prior | None, int, Affine] | None = vars(self).get("_last")
        if last is None or last[0] is not carried or last[1] != num_classes:
            is_same = last is not None and last[1] == num_classes and _same(last[0], carried)
            step = last[2] if last and is_same else self.affine(carried, num_classes)
            vars(self)["_last"] = last = carried, num_classes, step
        return last[2]


def _same(one: Prior | None, other: Prior | None) -> bool:
    """To the last bit, and quicker than comparing two priors."""
    return one is not None and other is not None and np.array_equal(one.log, other.log)


@np.errstate(over="ignore", invalid="ignore")  # which an Affine refuses
def chain_affine(
    adjusters: Sequence[Adjuster], carried: PriorLike | None, num_classes: int
) -> Affine:
    """All adjusters, one after the other, as one scale and one shift; a ValueError if out of order.

    `carried` is what the logits carry before the first; None as in `fold`.
    """
    steps = [_affine_only(adjuster) for adjuster in adjusters]
    start = None if carried is None else Prior.of(carried)
    if carried is None:
        for step in reversed(steps):
            start = step.carried_before(start)
    if start is not None:
        check_same_classes(num_classes, start, "the logits have", "the carried prior")
    whole = Affine(np.ones(num_classes), np.zeros(num_classes), start)
    for step in steps:
        then = step.affine(whole.carried, num_classes)
        shift = whole.shift * then.scale + then.shift
        whole = Affine(whole.scale * then.scale, shift, then.carried)
    return whole


def _affine_only(adjuster: Adjuster) -> AffineAdjuster:
    if isinstance(adjuster, AffineAdjuster):
        return adjuster
    raise ValueError(
        f"only adjusters that scale and shift logits can be folded, got a "
        f"{type(adjuster).__name__}; derive it from longtail.posthoc.AffineAdjuster"
    )


class LinearLike(Protocol):
    """Whatever has the weight of a linear layer, of shape (C, D), and its bias or None."""

    weight: Any
    bias: Any


class FoldedLinear(NamedTuple):
    """A linear layer of arrays: logits are x @ weight.T + bias."""

    weight: Any
    bias: Any


@overload
def fold(
    linear: nn.Linear, *adjusters: Adjuster, carried: PriorLike | None = None
) -> nn.Linear: ...


@overload
def fold(
    linear: LinearLike, *adjusters: Adjuster, carried: PriorLike | None = None
) -> FoldedLinear: ...


def fold(linear: Any, *adjusters: Adjuster, carried: PriorLike | None = None) -> Any:
    """A plain linear layer whose logits are already adjusted.

    It is made from the last layer of the model, a torch.nn.Linear, or anything else with `weight`
    and `bias`, of which the folded arrays come back, and adjusters in the order in which they are
    applied. Unless `carried` says what the logits of the layer carry, the adjusters do, as a
    LogitAdjustment and fitted calibrators can. What the folded logits carry is
    `chain_affine(adjusters, carried, num_classes).carried`. A class that a target prior rules out
    gets a bias of -inf, and probability zero.

    >>> from longtail.posthoc import LogitAdjustment, Temperature
    >>> layer = FoldedLinear(weight=np.eye(2), bias=np.zeros(2))
    >>> fold(layer, Temperature(2.0), LogitAdjustment([90, 10])).bias       # log 1/2 − log π
    array([-0.588,  1.609])
    """
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(linear, torch.nn.Module)
    if torch is not None and is_module and type(linear).forward is not torch.nn.Linear.forward:
        raise ValueError(
            f"fold takes a torch.nn.Linear, got {type(linear).__name__}, which may compute its "
            "logits in another way; make a linear layer of it first"
        )
    weight, bias = linear.weight, linear.bias
    step = chain_affine(adjusters, carried, len(weight))
    wide = as_numpy(weight).astype(np.float64) * step.scale[:, None]
    start = 0.0 if bias is None else as_numpy(bias).astype(np.float64)
    example = weight if bias is None else bias
    with np.errstate(over="ignore"):  # which is looked for next
        folded = FoldedLinear(like(wide, weight), like(start * step.scale + step.shift, example))
    if not (np.isfinite(as_numpy(folded.weight)).all() and (as_numpy(folded.bias) < np.inf).all()):
        raise ValueError(
            f"the folded layer has numbers that {weight.dtype} cannot hold; fold a wider one, or "
            "adjusters with smaller parameters"
        )
    if torch is None or not is_module:
        return folded
    # On "meta" nothing is drawn, so the random numbers that follow stay what they would have been.
    layer = torch.nn.Linear(linear.in_features, linear.out_features, device="meta")
    layer.weight = torch.nn.Parameter(folded.weight, weight.requires_grad)
    layer.bias = torch.nn.Parameter(folded.bias, example.requires_grad)
    return layer.train(linear.training)
