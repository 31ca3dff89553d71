r"""Decisions by what mistakes cost: one number a class, or a matrix of true and decided class.

    k*(x) = argmin_k R_k(x),        R_k(x) = Σ_y p(y|x) · C[y, k]

One number a class, c_y for mistaking class y for any other, is C[y, k] = c_y · [k ≠ y]. Then

    R_k = Σ_y c_y p_y − c_k p_k,        k* = argmax_k (z_k + log c_k),

what is most likely under the prior ∝ c ⊙ the prior that the probabilities are under: such costs are
a target (Elkan, 2001). Costs of a matrix are none. On its diagonal stands what a decision costs
that is right, as an operation does of those who need one; it counts like every other entry. Not to
decide costs a, and is best where a < min_k R_k (Chow, 1970).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from longtail.core.arrays import ArrayLike, ArrayT, Floats, Indices, RowsLike, as_numpy, like
from longtail.core.numbers import check_number
from longtail.core.retarget import scaled_and_shifted
from longtail.core.softmax import softmax

UNDECIDED = -1


@dataclass(frozen=True, eq=False)
class Costs:
    """What mistakes cost, of shape (C,) or (C, C): by true class, or also by the one decided on.

    >>> Costs.of([1, 5], 2).realised(np.array([0, 1, 1]), np.array([1, 0, 1])).tolist()
    [1.0, 5.0, 0.0]
    """

    values: Floats

    @classmethod
    def of(cls, costs: CostsLike, num_classes: int, classes: Sequence[str] | None = None) -> Costs:
        """Costs of so many classes, checked; `classes` are their names in order."""
        if isinstance(costs, Costs):
            costs = costs.values
        if isinstance(costs, Mapping):
            costs = _by_name(costs, classes)
        _check_columns(costs, classes)
        values = as_numpy(costs).astype(np.float64)
        if values.shape not in ((num_classes,), (num_classes, num_classes)):
            raise ValueError(
                f"costs must be one number for each of {num_classes} classes, or a matrix of true "
                f"(rows) and decided classes (columns), got shape {values.shape}"
            )
        wrong = ~(np.isfinite(values) & (values >= 0))
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            where = f"class {at[0]}" if len(at) == 1 else f"true class {at[0]} taken for {at[1]}"
            raise ValueError(
                f"costs must be finite, none negative, got {values[at]:g} for {where}; to a row of "
                "a matrix any number can be added: that changes no decision"
            )
        if not values.any():
            raise ValueError("costs must not be all zero: then every decision is as good")
        return cls(values)

    @property
    def is_matrix(self) -> bool:
        """Whether it counts, too, what a class is taken for."""
        return self.values.ndim == 2

    def decide(self, logits: ArrayT, abstain: float | None = None) -> ArrayT:
        """The class of least expected cost of each row; UNDECIDED where `abstain` is less."""
        if abstain is not None:
            check_number(abstain, "abstain", 0)
        if self.is_matrix:
            expected = self.expected(logits)
            decided = cast(Any, expected).argmin(1)
            least = cast(Any, expected).min(1)
        else:
            with np.errstate(divide="ignore"):
                shift = np.log(self.values)
            decided = cast(Any, scaled_and_shifted(logits, None, shift)).argmax(1)
            least = None if abstain is None else cast(Any, self.expected(logits)).min(1)
        if abstain is None:
            return cast(ArrayT, decided)
        least = least.values if hasattr(least, "values") else least  # torch gives places, too
        return cast(ArrayT, (decided + 1) * (least <= abstain) + UNDECIDED)

    def expected(self, logits: ArrayT) -> ArrayT:
        """R_k of each row and class, in the caller's kind."""
        probs: Any = softmax(logits)
        values = like(self.values, probs)
        if self.is_matrix:
            return cast(ArrayT, probs @ values)
        weighted = probs * values
        return cast(ArrayT, weighted.sum(1)[:, None] - weighted)

    def realised(self, labels: Indices, decided: Indices, abstain: float | None = None) -> Floats:
        """What each decision cost, by the true class."""
        if abstain is not None:
            check_number(abstain, "abstain", 0)
        at = np.maximum(decided, 0)
        each = self.values[labels, at] if self.is_matrix else self.values[labels] * (labels != at)
        return np.where(decided == UNDECIDED, 0.0 if abstain is None else abstain, each)


# One cost a class, in order or by name, or a row a true class with a column a decided one.
CostsLike: TypeAlias = Costs | ArrayLike | RowsLike | Mapping[str, float]


def _by_name(costs: Mapping[str, float], classes: Sequence[str] | None) -> list[float]:
    if classes is None or costs.keys() != set(classes):
        known = "the scores do not name their classes" if classes is None else f"{list(classes)}"
        raise ValueError(
            f"costs by name must name each class once, got {list(costs)!s:.80}, where the classes "
            f"are {known:.80}; give a list in their order, or all names"
        )
    return [costs[name] for name in classes]


def _check_columns(costs: object, classes: Sequence[str] | None) -> None:
    """A ValueError if a DataFrame has its rows or columns in another order than the classes."""
    for side in ("columns", "index"):
        names = getattr(costs, side, None)
        if names is None or callable(names) or not all(isinstance(name, str) for name in names):
            continue
        if classes is not None and list(names) != list(classes):
            raise ValueError(
                f"the {side} of costs must be the classes in their order, got "
                f"{list(names)!s:.80}, where the classes are {list(classes)!s:.80}"
            )
