"""Softmax and its relatives, in NumPy a block of rows at a time so that it stays in the cache."""

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from longtail.core.arrays import ArrayT, Numbers, is_torch
from longtail.core.blocks import IN_CACHE, slices


def softmax(logits: ArrayT, axis: int = 1) -> ArrayT:
    """exp(z) / Σ exp(z) along an axis, in the caller's kind; of half precision in float32."""
    wide = widened(logits)
    if isinstance(wide, np.ndarray):
        return cast(ArrayT, _by_blocks(_softmax, wide, axis))
    if is_torch(wide):
        return cast(ArrayT, wide.softmax(dim=axis))
    return cast(ArrayT, sys.modules["jax"].nn.softmax(wide, axis=axis))


def sigmoid(logits: ArrayT) -> ArrayT:
    """1 / (1 + exp(−z)), in the caller's kind; of half precision in float32."""
    wide = widened(logits)
    if isinstance(wide, np.ndarray):
        with np.errstate(over="ignore"):  # exp(−z) of a large −z is inf, and the sigmoid 0
            return cast(ArrayT, 1 / (1 + np.exp(-wide)))
    if is_torch(wide):
        return cast(ArrayT, wide.sigmoid())
    return cast(ArrayT, sys.modules["jax"].nn.sigmoid(wide))


def log_softmax(logits: Numbers, axis: int = 1) -> Numbers:
    """Z − log Σ exp(z) along an axis."""
    return _by_blocks(_log_softmax, logits, axis)


def logsumexp(logits: Numbers, axis: int = 1) -> Numbers:
    """Log Σ exp(z) along an axis, which goes; -inf where all are."""
    top = logits.max(axis, keepdims=True)
    safe = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logits - safe).sum(axis, keepdims=True))
    return np.asarray((total + safe).squeeze(axis))


def widened(logits: Any) -> Any:
    """Numbers of half precision in float32, all others as they are, in the caller's kind."""
    if logits.dtype.itemsize > 2:
        return logits
    return logits.float() if is_torch(logits) else logits.astype(np.float32)


def _softmax(rows: Numbers, axis: int, out: Numbers | None = None) -> Numbers:
    exps: Numbers = np.exp(np.subtract(rows, rows.max(axis, keepdims=True), out=out), out=out)
    exps /= exps.sum(axis, keepdims=True)
    return exps


def _log_softmax(rows: Numbers, axis: int, out: Numbers | None = None) -> Numbers:
    logs: Numbers = np.subtract(rows, rows.max(axis, keepdims=True), out=out)
    logs -= np.log(np.exp(logs).sum(axis, keepdims=True))
    return logs


def _by_blocks(work: Callable[..., Numbers], logits: Numbers, axis: int) -> Numbers:
    if axis == 0 or logits.size <= IN_CACHE:
        return work(logits, axis)
    into = np.empty_like(logits)
    for at in slices(len(logits), logits[0].size, IN_CACHE):
        work(logits[at], axis, into[at])
    return into
