"""Elementwise work on logits in the caller's kind: NumPy, torch on its device, JAX.

Torch and JAX differentiate and trace through it. Half-precision numbers are widened to float32 for
the work and come back as they were.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from longtail.core import softmax as in_numpy
from longtail.core.arrays import ArrayT, as_numpy, class_axis, is_jax, is_torch


def scaled_and_shifted(
    logits: ArrayT, scale: npt.NDArray[np.float64] | None, shift: npt.NDArray[np.float64] | None
) -> ArrayT:
    """scale_y · f_y + shift_y for one number a class each; None changes nothing."""
    moved = _widened(logits)
    for per_class, operation in ((scale, "__mul__"), (shift, "__add__")):
        if per_class is not None:
            moved = getattr(moved, operation)(_along_classes(per_class, moved))
    return cast(ArrayT, moved.to(logits.dtype) if is_torch(logits) else moved.astype(logits.dtype))


def softmax(logits: ArrayT) -> ArrayT:
    """Probabilities over the classes; those of half-precision logits in float32."""
    wide = _widened(logits)
    if is_torch(wide):
        return cast(ArrayT, wide.softmax(dim=class_axis(logits)))
    if is_jax(wide):
        return cast(ArrayT, sys.modules["jax"].nn.softmax(wide, axis=class_axis(logits)))
    return cast(ArrayT, in_numpy.softmax(wide, axis=class_axis(logits)))


def largest(rows: Any) -> npt.NDArray[Any]:
    """The largest number of each row, as a NumPy array; NaN where a row has one."""
    return as_numpy(rows.amax(dim=1) if is_torch(rows) else rows.max(axis=1))


def _widened(logits: Any) -> Any:
    if is_torch(logits):
        return logits.float() if logits.element_size() == 2 else logits
    return logits.astype(np.float32) if logits.dtype.itemsize == 2 else logits


def _along_classes(per_class: npt.NDArray[np.float64], logits: Any) -> Any:
    """One number a class in the logits' kind and type, shaped to broadcast over them."""
    shape = (-1, *(1,) * (len(logits.shape) - 1 - class_axis(logits)))
    if is_torch(logits):
        row = sys.modules["torch"].from_numpy(per_class)
        return row.to(logits.device, logits.dtype).reshape(shape)
    if is_jax(logits):
        return sys.modules["jax"].numpy.asarray(per_class, logits.dtype).reshape(shape)
    return per_class.astype(logits.dtype, copy=False).reshape(shape)
