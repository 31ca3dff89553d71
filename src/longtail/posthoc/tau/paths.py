r"""The two ways in which logits move with τ, and on which τ they are right along them.

    shift   f_y + τ·o_y          o = log t − log π: from the prior π towards the target t (LA eq. 9)
    scale   f_y · ν_y^−τ         ν = ‖w‖ or π: weight normalisation (LA eq. 3)

A class that the target rules out is ruled out at every τ. Scaled logits keep their sign, so a
positive one is beaten by positive ones only, and log f_y − τ·log ν_y are lines; where all are
negative, −log|f_y| + τ·log ν_y are.

Of both: `affine` is the factor and the addend of each class's logit; `mover` moves logits of
float32 or float64 to the bit as `affine` would, into memory that may be given; `rates` are the
first and second derivative of moved logits by τ, finite where those are -inf too; `length` and
`reach` are how far a unit of τ moves the logits of a sample against each other, as a deviation and
for two of them at most, in mean square; `intervals` are the τ on which each sample is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from longtail.core.arrays import Floats, Indices, Numbers
from longtail.core.blocks import IN_CACHE, slices
from longtail.core.softmax import widened
from longtail.posthoc.tau.intervals import NEVER, Intervals, Load, line_intervals

_SOME = 1000  # samples that tell how large logits are

Move: TypeAlias = Callable[[Numbers, Numbers | None], Numbers]


@dataclass(frozen=True, eq=False)
class Shift:
    """f + τ·offset, where an offset of -inf rules its class out."""

    offset: Floats

    @np.errstate(over="ignore")  # which an Affine refuses
    def affine(self, tau: float) -> tuple[Floats, Floats]:
        """One, and τ·offset."""
        shift = np.where(np.isneginf(self.offset), -np.inf, tau * self._finite)
        return np.ones_like(self.offset), shift

    def mover(self, tau: float) -> Move:
        """Adds τ·offset."""
        shift = self.affine(tau)[1]
        return lambda rows, out: np.add(rows, shift.astype(rows.dtype), out=out)

    def rates(self, moved: Floats) -> tuple[Floats, Floats]:
        """The offset, and nothing."""
        return self._finite, np.zeros_like(self.offset)

    def length(self, logits: Numbers) -> float:
        """The deviation of the offset over the classes that are not ruled out."""
        return float(self.offset[np.isfinite(self.offset)].std())

    def reach(self, logits: Numbers) -> float:
        """From the lowest offset to the highest, of the classes that are not ruled out."""
        return float(np.ptp(self.offset[np.isfinite(self.offset)]))

    def intervals(self, logits: Numbers, labels: Indices) -> Intervals:
        """Lines with the offset for slope."""
        ruled_out = np.flatnonzero(np.isneginf(self.offset))

        def load(at: Indices, rows: Numbers) -> None:
            _load(logits, at, rows)
            if len(ruled_out):
                rows[:, ruled_out] = -np.inf

        return line_intervals(load, labels, self._finite, wide_dtype(logits))

    @property
    def _finite(self) -> Floats:
        return np.where(np.isneginf(self.offset), 0.0, self.offset)


@dataclass(frozen=True, eq=False)
class Scale:
    """f · ν^−τ."""

    log_nu: Floats

    @np.errstate(over="ignore")  # which an Affine refuses
    def affine(self, tau: float) -> tuple[Floats, Floats]:
        """ν^−τ, and nothing."""
        return np.exp(-tau * self.log_nu), np.zeros_like(self.log_nu)

    def mover(self, tau: float) -> Move:
        """Divides by ν^τ."""
        factor = self.affine(tau)[0]
        return lambda rows, out: np.multiply(rows, factor.astype(rows.dtype), out=out)

    def rates(self, moved: Floats) -> tuple[Floats, Floats]:
        """−log ν times the logits, and that once more."""
        finite = np.where(np.isneginf(moved), 0.0, moved)
        return -self.log_nu * finite, np.square(self.log_nu) * finite

    def length(self, logits: Numbers) -> float:
        """The deviation of −log ν times the logits, over the classes of some of the samples."""
        return float(self._some_rates(logits).std(axis=1).mean())

    def reach(self, logits: Numbers) -> float:
        """From the lowest of −log ν times the logits to the highest, of some of the samples."""
        return float(np.sqrt(np.square(np.ptp(self._some_rates(logits), axis=1)).mean()))

    def _some_rates(self, logits: Numbers) -> Floats:
        return self.rates(logits[:_SOME].astype(np.float64))[0]

    def intervals(self, logits: Numbers, labels: Indices) -> Intervals:
        """Lines of the logarithms, apart for samples with a positive logit and those without."""
        top = logits.max(axis=1)
        right = Intervals(np.full(len(top), np.inf), np.full(len(top), -np.inf))
        for sign in (1, -1):
            at = np.flatnonzero(top * sign > 0)
            if len(at):
                load, wide = _logs(logits, at, sign), np.dtype(np.float64)
                part = line_intervals(load, labels[at], -sign * self.log_nu, wide)
                right.start[at], right.stop[at] = part
        zero = np.flatnonzero(top == 0)
        always = zero[predict(self, logits[zero], 0.0) == labels[zero]]
        right.start[always], right.stop[always] = -np.inf, np.inf
        return right


TauPath: TypeAlias = Shift | Scale


def predict(path: TauPath, logits: Numbers, tau: float) -> Indices:
    """What is predicted at τ from logits that are stored in their own dtype again."""
    most, move = max(1, IN_CACHE // logits.shape[1]), path.mover(tau)
    memory = np.empty((min(most, len(logits)), logits.shape[1]), wide_dtype(logits))
    predicted = np.empty(len(logits), np.int64)
    for at in slices(len(logits), logits.shape[1], IN_CACHE):
        rows = logits[at]
        moved = move(widened(rows), memory[: len(rows)])
        widened(moved.astype(rows.dtype, copy=False)).argmax(axis=1, out=predicted[at])
    return predicted


def wide_dtype(rows: Numbers) -> np.dtype[Any]:
    """What such numbers are computed in: float32 for the halves, else their own type."""
    return np.dtype(np.float32) if rows.dtype.itemsize == 2 else rows.dtype


def _logs(logits: Numbers, samples: Indices, sign: int) -> Load:
    """What loads log f of some samples, or −log(−f) if the sign is negative."""

    def load(at: Indices, rows: Numbers) -> None:
        _load(logits, samples[at], rows)
        with np.errstate(divide="ignore"):
            np.log(np.maximum(sign * rows, 0, out=rows), out=rows)
        np.maximum(sign * rows, NEVER, out=rows)

    return load


def _load(logits: Numbers, at: Indices, rows: Numbers) -> None:
    """Write some rows of the logits into memory."""
    if logits.dtype == rows.dtype:
        np.take(logits, at, axis=0, out=rows, mode="clip")  # without a copy in between
    else:
        rows[...] = logits[at]
