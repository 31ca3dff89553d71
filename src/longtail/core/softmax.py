"""Softmax and its relatives, in NumPy a block of rows at a time so that it stays in the cache."""

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import ArrayT, is_jax, is_torch
from longtail.core.blocks import slices

_IN_CACHE = 2**16  # numbers that the second look at them still finds there


def softmax(logits: ArrayT, axis: int = 1) -> ArrayT:
    """exp(z) / Σ exp(z) along an axis, in the caller's kind; of half precision in float32."""

    def fill(into: npt.NDArray[Any], rows: npt.NDArray[Any]) -> None:
        np.exp(np.subtract(rows, rows.max(axis, keepdims=True), out=into), out=into)
        into /= into.sum(axis, keepdims=True)

    wide = widened(logits)
    if is_torch(wide):
        return cast(ArrayT, wide.softmax(dim=axis))
    if is_jax(wide):
        return cast(ArrayT, sys.modules["jax"].nn.softmax(wide, axis=axis))
    return cast(ArrayT, _by_blocks(fill, wide, axis))


def log_softmax(logits: npt.NDArray[Any], axis: int = 1) -> npt.NDArray[Any]:
    """Z − log Σ exp(z) along an axis."""

    def fill(into: npt.NDArray[Any], rows: npt.NDArray[Any]) -> None:
        np.subtract(rows, rows.max(axis, keepdims=True), out=into)
        into -= np.log(np.exp(into).sum(axis, keepdims=True))

    return _by_blocks(fill, logits, axis)


def logsumexp(logits: npt.NDArray[Any], axis: int = 1) -> npt.NDArray[Any]:
    """Log Σ exp(z) along an axis, which goes; -inf where all are."""
    top = logits.max(axis, keepdims=True)
    safe = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logits - safe).sum(axis, keepdims=True))
    return np.asarray((total + safe).squeeze(axis))


def widened(logits: Any) -> Any:
    """Numbers of half precision in float32, all others as they are, in the caller's kind."""
    if is_torch(logits):
        return logits.float() if logits.element_size() == 2 else logits
    return logits.astype(np.float32) if logits.dtype.itemsize == 2 else logits


def _by_blocks(
    fill: Callable[[npt.NDArray[Any], npt.NDArray[Any]], None], logits: npt.NDArray[Any], axis: int
) -> npt.NDArray[Any]:
    into = np.empty_like(logits)
    if axis == 0 or logits.size <= _IN_CACHE:
        fill(into, logits)
    else:
        for rows in slices(len(logits), logits[0].size, _IN_CACHE):
            fill(into[rows], logits[rows])
    return into
