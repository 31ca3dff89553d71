r"""Probabilities at the door: told from logits, checked, and turned into logits.

Rows that are all non-negative and all sum to one are probabilities. Taken for logits, they would be
softmaxed a second time and every number after that be wrong, so they are refused. Real logits do
not look like that but by accident: two rows of two classes do in one case of a hundred million. A
single row, of which a server may see many, is refused only if it sums to one to the last digit, and
in half precision, which has few digits, not at all.

A probability of exactly zero is floored,

    log max(p, min(ε, smallest p > 0 of the row)),     ε the machine precision,

since it is no impossibility: a forest says 0 where no tree has seen the class, softmax in half
precision underflows. With log 0 = -inf no evidence and no prior could ever mend it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.core.arrays import Array, Numbers, as_numpy, precision

# What the probabilities of a thousand classes in float16 can miss one by.
_SUM_TOLERANCE = 1e-3
# What rounding to two digits of ten classes, or to three of a hundred, makes of the sum.
_ROUNDED_TOLERANCE = 2e-2
_NEAR = 0.2  # of one or 100: probabilities that were rounded too much, but no logits
_PERCENT = 100.0
FIRST_ROWS = 8  # they nearly always tell that these are no probabilities


class NotLogitsError(ValueError):
    """What was said to be logits are probabilities."""


@dataclass(frozen=True)
class RowSums:
    """What tells rows of probabilities from rows of logits; blocks of rows can be joined."""

    num_rows: int
    num_classes: int
    eps: float  # the machine precision of their type
    least: float  # the smallest number
    low: float  # the smallest sum of a row
    high: float  # and the largest

    @classmethod
    def of(cls, rows: Numbers, eps: float | None = None) -> RowSums:
        """Of some rows, one or more; `eps` of what they were before they were widened."""
        sums = rows.sum(axis=1, dtype=np.float64)
        return cls(
            num_rows=rows.shape[0],
            num_classes=rows.shape[1],
            eps=precision(rows) if eps is None else eps,
            least=float(rows.min()),
            low=float(sums.min()),
            high=float(sums.max()),
        )

    def joined(self, other: RowSums) -> RowSums:
        """Of the rows of both."""
        return RowSums(
            self.num_rows + other.num_rows,
            self.num_classes,
            self.eps,
            min(self.least, other.least),
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def total(self) -> float | None:
        """What every row of probabilities sums to, 1 or 100 (percent); None if these are none."""
        if self.num_rows == 1:
            # In half precision the logits of one row sum to one by accident now and then.
            is_wide = self.eps <= float(np.finfo(np.float32).eps)
            return self._total_within(max(8, self.num_classes) * self.eps) if is_wide else None
        few = self.num_rows <= FIRST_ROWS
        return self._total_within(_SUM_TOLERANCE if few else _ROUNDED_TOLERANCE)

    @property
    def may_be_probs(self) -> bool:
        """Whether more such rows could be probabilities."""
        return self._total_within(_ROUNDED_TOLERANCE) is not None

    def _total_within(self, tolerance: float) -> float | None:
        if self.num_classes < 2 or not self.least >= 0:  # NaN is not, either
            return None
        return _total_near(self.low, self.high, max(tolerance, self.eps))


def check_not_probs(logits: Array) -> None:
    """Raise NotLogitsError if these logits of shape (N, C), all together, are probabilities."""
    rows = as_numpy(logits)
    if not rows.size:
        return
    with np.errstate(over="ignore"):
        sum_of_first = float(rows[0].sum(dtype=np.float64))
    if _total_near(sum_of_first, sum_of_first, _ROUNDED_TOLERANCE) is None:
        return  # which the first row of nearly all logits tells
    eps = precision(logits)
    if not RowSums.of(rows[:FIRST_ROWS], eps).may_be_probs:
        return
    total = RowSums.of(rows, eps).total
    if total is not None:
        raise NotLogitsError(
            f"these logits are {kind_in_words(total)}; write "
            f"Scores.from_probs(probs{' / 100' if total == _PERCENT else ''}, ...), or take their "
            "logarithms where only logits are taken. Should they be logits by accident, subtract "
            "its mean from each row: that changes nothing about logits"
        )


def kind_in_words(total: float) -> str:
    """What rows are that sum to this."""
    if total == _PERCENT:
        return "percentages: no number is negative and every row sums to 100"
    return "probabilities: no number is negative and every row sums to one"


def log_probs(
    probs: Array, where: str, otherwise: str, first_row: int = 0, stacklevel: int = 2
) -> Numbers:
    """Logarithms of probabilities, rounded ones and percentages too; zeros are floored.

    Warns of what was done to them, and raises a ValueError for rows that are no probabilities: its
    sentence calls them `where`, numbers them from `first_row` and ends in what to do with logits.
    """
    rows = as_numpy(probs)
    sums = rows.sum(axis=1, dtype=np.float64)
    percent = bool(len(sums)) and abs(float(sums[0]) / _PERCENT - 1) <= _ROUNDED_TOLERANCE
    total = _PERCENT if percent else 1.0
    missed = np.abs(sums / total - 1)
    wrong = (missed > _ROUNDED_TOLERANCE) | (rows < 0).any(axis=1)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"{where} must be probabilities, each row summing to one and none negative; row "
            f"{first_row + at} sums to {sums[at]:.6g} with smallest entry {rows[at].min():.3g}; "
            f"{_advice(rows, float(sums[at]), otherwise)}"
        )
    rounded = bool((missed > max(_SUM_TOLERANCE, precision(probs))).any())
    remarks = {
        f"the rows of {where} sum to 100: they are taken for percentages": percent,
        f"the rows of {where} do not sum to {total:.0f} exactly, as after rounding: each is "
        "divided by its sum; numbers with more digits say more": rounded,
        f"{where} has probabilities of exactly zero, as forests and rounding give: they are taken "
        "for very small ones, not for impossible classes": bool((rows == 0).any()),
    }
    for sentence, is_so in remarks.items():
        if is_so:
            warnings.warn(sentence, stacklevel=stacklevel)
    wide = rows.astype(np.float32) if rows.dtype.itemsize == 2 else rows
    return floored_log(wide / sums[:, None].astype(wide.dtype) if percent or rounded else wide)


def floored_log(probs: Numbers, computed_in: np.dtype[Any] | None = None) -> Numbers:
    """Logarithms of probabilities, those of zero floored by the precision they were computed in."""
    if probs.all():
        return np.asarray(np.log(probs))
    is_known = computed_in is not None and computed_in.kind == "f"
    none, most = (
        probs == 0,
        probs.dtype.type(np.finfo(computed_in if is_known else probs.dtype).eps),
    )
    least = np.minimum(np.where(none, most, probs).min(axis=1, keepdims=True), most)
    return np.asarray(np.log(np.where(none, least, probs)))


def _total_near(low: float, high: float, reach: float) -> float | None:
    """1 or 100, if both sums are as near to it; None for others, such as NaN."""
    for total in (1.0, _PERCENT):
        if abs(low - total) <= reach * total and abs(high - total) <= reach * total:
            return total
    return None


def _advice(rows: Numbers, total: float, otherwise: str) -> str:
    """What to do with rows that are no probabilities; one of them has that sum."""
    near = min(abs(total - 1), abs(total / _PERCENT - 1))
    if rows.min() < 0 or (rows.max() > 1 and near > _NEAR):
        return f"if these are logits, {otherwise}"
    return (
        "where rounding took so much away, save them with more digits, or divide each row by its "
        'sum; independent probabilities of several labels need family="sigmoid"'
    )
