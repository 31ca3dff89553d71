r"""Moving logits from the prior they carry to another: the one place that subtracts two priors.

Logits of the best model under prior c are log p(x|y) + log c(y) up to a constant of x; they carry
c. Under target t they are

    z + log t - log c                                    (LADE eq. 4; LA eq. 9 with t uniform)

and softmax of that is p_t(y|x) exactly (LADE theorem 1), as long as p(x|y) stays the same.
"""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import (
    Array,
    ArrayT,
    RowsLike,
    Table,
    as_array,
    class_axis,
    is_floating,
)
from longtail.core.elementwise import scaled_and_shifted
from longtail.core.prior import Prior, PriorLike, check_same_classes, full_prior


class UnknownPriorError(ValueError):
    """The logits are not known to carry any prior, so there is nothing to move them from."""

    def __init__(self, what: str = "these logits carry no known prior") -> None:
        super().__init__(what)  # what a copy is made from again, so not the whole sentence

    def __str__(self) -> str:
        return (
            f"{self.args[0]}, so they cannot be moved to another one; fit the prior they carry on "
            "held-out labels with longtail.measure_carried(logits, labels) and pass that as carried"
        )


def prior_offset(carried: PriorLike | None, target: PriorLike) -> npt.NDArray[np.float64]:
    """What to add to each class's logit, float64; -inf for a class that the target rules out."""
    if carried is None:
        raise UnknownPriorError
    source, goal = full_prior(carried, "carried"), Prior.of(target)
    check_same_classes(source.num_classes, goal, "the carried prior has", "the target prior")
    return np.asarray(goal.log - source.log)


@overload
def retarget(
    logits: Table | Sequence[Any], carried: PriorLike | None, target: PriorLike
) -> npt.NDArray[Any]: ...


@overload
def retarget(logits: ArrayT, carried: PriorLike | None, target: PriorLike) -> ArrayT: ...


def retarget(logits: RowsLike, carried: PriorLike | None, target: PriorLike) -> Any:
    """Logits that carry `carried`, moved so that they carry `target`.

    Args:
        logits: Shape (N, C), (N, C, d, ...) or (C,), of a floating type, which is kept, as is the
            kind: NumPy, torch on its device (differentiable), JAX. Lists and DataFrames come back
            as NumPy arrays.
        carried: The prior the logits carry: a Prior or class counts. None raises
            UnknownPriorError.
        target: The prior to move to: a Prior or class counts.

    >>> import numpy as np
    >>> logits = np.log([[0.70, 0.25, 0.05]])       # a model that has only learned the counts
    >>> moved = retarget(logits, [70, 25, 5], [1, 1, 1])
    >>> np.exp(moved) / np.exp(moved).sum()
    array([[0.333, 0.333, 0.333]])
    """
    rows = as_array(logits)
    offset = prior_offset(carried, target)
    check_logits(rows, len(offset))
    return scaled_and_shifted(rows, None, offset)


def check_logits(logits: Array, num_classes: int) -> None:
    """Raise unless the logits are of a floating type and have that many classes."""
    if not is_floating(logits):
        raise ValueError(f"logits must be of a floating type, got {logits.dtype}")
    axis = class_axis(logits)
    if len(logits.shape) < 1 or logits.shape[axis] != num_classes:
        raise ValueError(
            f"logits must have {num_classes} classes on axis {axis}, "
            f"got shape {tuple(logits.shape)}"
        )
