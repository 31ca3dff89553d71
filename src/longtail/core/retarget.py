r"""Moving logits from the prior they carry to another: the one place that subtracts two priors.

Logits of the best model under prior c are log p(x|y) + log c(y) up to a constant of x; they carry
c. Under target t they are

    z + log t - log c                                    (LADE eq. 4; LA eq. 9 with t uniform)

and softmax of that is p_t(y|x) exactly (LADE theorem 1), as long as p(x|y) stays the same.

Of yes/no labels that a sample may have together, one logit z a label, that is the move of [0, z]
from a prior [1 − c, c] to [1 − t, t], for every label by itself:

    z_l + logit t_l - logit c_l

and the sigmoid of that is p_t(y_l|x) exactly, as long as p(x|y_l) stays the same. Of labels that
come together it does not when several of them change: docs/multi-label.md.
"""

import sys
from collections.abc import Sequence
from typing import Any, cast, overload

import numpy as np

from longtail.core import arrays
from longtail.core.arrays import Array, ArrayT, Floats, Numbers, RowsLike, Table
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.label_odds import LabelOdds, LabelOddsLike, check_same_labels
from longtail.core.prior import Prior, PriorLike, check_same_classes, full_prior
from longtail.core.softmax import widened
from longtail.core.threads import one_blas_thread
from longtail.core.tracing import constant_when_traced

_FEW = 2**14  # numbers that are looked at row by row as fast


class UnknownPriorError(ValueError):
    """The logits are not known to carry any prior, so there is nothing to move them from."""

    def __init__(
        self, what: str = "these logits carry no known prior", measure: str = "measure_carried"
    ) -> None:
        super().__init__(what, measure)  # what a copy is made from, so not the whole sentence

    def __str__(self) -> str:
        return (
            f"{self.args[0]}, so they cannot be moved to another one; measure it on validation "
            f"samples with longtail.{self.args[1]}(logits, labels) and pass that as carried"
        )


class OverflowedError(ValueError, FloatingPointError):
    """Logits were moved out of the range of their type."""


@constant_when_traced
def prior_offset(carried: PriorLike | None, target: PriorLike) -> Floats:
    """What to add to each class's logit, float64; -inf for a class that the target rules out."""
    if carried is None:
        raise UnknownPriorError
    source, goal = full_prior(carried, "carried"), Prior.of(target)
    check_same_classes(source.num_classes, goal, "the carried prior has", "the target prior")
    return log_ratio(source.log, goal.log)


def label_offset(carried: LabelOddsLike | None, target: LabelOddsLike) -> Floats:
    """What to add to the logit of each yes/no label, float64: the move of [0, z]."""
    if carried is None:
        raise UnknownPriorError("these logits carry no known odds", "measure_odds")
    source, goal = LabelOdds.of(carried), LabelOdds.of(target)
    check_same_labels(source.num_labels, goal, "the carried odds have", "the target odds have")
    return log_ratio(source.logit, goal.logit)


def log_ratio(carried_log: Floats, target_log: Floats) -> Floats:
    """What leads from one prior to another, from their logarithms: the one subtraction of two.

    Of several at a time too: any shapes that broadcast.
    """
    return np.asarray(target_log - carried_log)


@overload
def retarget(
    logits: Table | Sequence[Any],
    carried: PriorLike | LabelOdds | None,
    target: PriorLike | LabelOdds,
) -> Numbers: ...


@overload
def retarget(
    logits: ArrayT, carried: PriorLike | LabelOdds | None, target: PriorLike | LabelOdds
) -> ArrayT: ...


def retarget(
    logits: RowsLike, carried: PriorLike | LabelOdds | None, target: PriorLike | LabelOdds
) -> Any:
    """Logits that carry `carried`, moved so that they carry `target`.

    Logits have the shape (N, C), (N, C, d, ...) or (C,) and a floating type, which is kept, as is
    the kind: NumPy, torch on its device (differentiable), JAX. Lists and DataFrames come back as
    NumPy arrays. Priors may be class counts; None for what is carried raises UnknownPriorError.
    Logits of yes/no labels are moved from one `LabelOdds` to another, each label by itself.

    >>> import numpy as np
    >>> logits = np.log([[0.70, 0.25, 0.05]])       # a model that has only learned the counts
    >>> moved = retarget(logits, [70, 25, 5], [1, 1, 1])
    >>> np.exp(moved) / np.exp(moved).sum()
    array([[0.333, 0.333, 0.333]])
    """
    rows = arrays.as_array(logits)
    if isinstance(target, LabelOdds) or isinstance(carried, LabelOdds):
        offset = label_offset(carried, target)  # type: ignore[arg-type]  # which refuses a prior
    else:
        offset = prior_offset(carried, target)
    check_logits(rows, len(offset))
    return scaled_and_shifted(rows, None, offset)


def scaled_and_shifted(logits: ArrayT, scale: Floats | None, shift: Floats | None) -> ArrayT:
    """scale_y · f_y + shift_y for one number a class each, in the caller's kind; None is none.

    Torch and JAX differentiate and trace through it. Half-precision numbers are widened to float32
    for the work and come back as they were. Below the lowest number is -inf; a ValueError if NumPy
    has none above (the others do not say so by themselves: `Scores` looks).
    """
    if not isinstance(logits, np.ndarray):
        return _scaled_and_shifted(logits, scale, shift)
    try:
        with np.errstate(over="raise", invalid="raise"):  # which costs no look at the numbers
            return _scaled_and_shifted(logits, scale, shift)
    except FloatingPointError:
        pass
    with np.errstate(over="ignore", invalid="ignore"):
        moved = _scaled_and_shifted(logits, scale, shift)
    by_class = np.moveaxis(moved, arrays.class_axis(moved), -1)
    check_in_range(by_class.reshape(-1, by_class.shape[-1]))
    return moved


def _scaled_and_shifted(logits: ArrayT, scale: Floats | None, shift: Floats | None) -> ArrayT:
    if isinstance(logits, np.ndarray) and logits.ndim == 2 and logits.size > IN_CACHE:
        into = np.empty_like(logits)
        for at in slices(len(logits), logits.shape[1], IN_CACHE):
            into[at] = _scaled_and_shifted(logits[at], scale, shift)
        return cast(ArrayT, into)
    moved = widened(logits)
    if scale is not None:
        moved = moved * _along_classes(scale, moved)
    if shift is not None:
        moved = moved + _along_classes(shift, moved)
    if moved.dtype != logits.dtype:
        moved = moved.to(logits.dtype) if arrays.is_torch(moved) else moved.astype(logits.dtype)
    return cast(ArrayT, moved)


def check_logits(logits: Array, num_classes: int) -> None:
    """Raise unless the logits are of a floating type and have that many classes."""
    if not arrays.is_floating(logits):
        raise ValueError(f"logits must be of a floating type, got {logits.dtype}")
    axis = arrays.class_axis(logits)
    if len(logits.shape) < 1 or logits.shape[axis] != num_classes:
        raise ValueError(
            f"logits must have {num_classes} classes on axis {axis}, "
            f"got shape {tuple(logits.shape)}"
        )


def check_finite(rows: Array, name: str, first_row: int = 0) -> None:
    """Raise for NaN, +inf, or nothing but -inf, which leaves no class to predict."""
    if isinstance(rows, np.ndarray) and rows.size > _FEW and _square_is_finite(rows):
        return
    right = np.isfinite(largest(rows))
    if not right.all():
        row = int(right.argmin())
        values = arrays.as_numpy(rows[row])
        column = int((~(values < np.inf)).argmax())
        raise ValueError(
            f"{name} must hold numbers below +inf with one finite value in every row, got "
            f"{values[column]} in row {first_row + row}, class {column}; the model that made them "
            "has diverged, a value is missing, or a file was read with the wrong type"
        )


@np.errstate(over="ignore", invalid="ignore")
@one_blas_thread()
def _square_is_finite(rows: Numbers) -> bool:
    """Whether the sum of all squares is, which is seen sooner than row by row; if not, look."""
    blocks = (rows[at] for at in slices(len(rows), rows[0].size, IN_CACHE))
    return all(bool(np.isfinite(np.vdot(block, block))) for block in blocks)


def check_in_range(rows: Array) -> None:
    """Raise an OverflowedError for moved logits that `check_finite` refuses."""
    try:
        check_finite(rows, "the moved logits")
    except ValueError as error:
        raise OverflowedError(str(error)) from None


def largest(rows: Any) -> Numbers:
    """The largest number of each row; NaN where a row has one."""
    return arrays.as_numpy(rows.amax(dim=1) if arrays.is_torch(rows) else rows.max(axis=1))


def _along_classes(per_class: Floats, logits: Any) -> Any:
    """One number a class in the logits' kind and type, shaped to broadcast over them."""
    if isinstance(logits, np.ndarray):
        row = per_class.astype(logits.dtype, copy=False)
    elif arrays.is_torch(logits):
        row = sys.modules["torch"].from_numpy(per_class).to(logits.device, logits.dtype)
    else:
        row = sys.modules["jax"].numpy.asarray(per_class, logits.dtype)
    return row if logits.ndim <= 2 else row.reshape(-1, *(1,) * (logits.ndim - 2))
