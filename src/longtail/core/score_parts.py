"""Some of the samples of scores, and several scores as one: what both kinds of scores do alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longtail.core import arrays
from longtail.core.arrays import ArrayLike

if TYPE_CHECKING:
    from longtail.core.scores import Scores


def positions(rows: ArrayLike) -> Any:
    """Rows that are asked for, as an index."""
    at = arrays.as_numpy(rows) if np.ndim(cast(Any, rows)) == 1 else None
    if at is not None and not at.size:
        return np.zeros(0, np.int64)  # an empty list has no integer to say what it is of
    if at is None or at.dtype.kind not in "biu":
        raise ValueError(
            f"rows must be positions in one dimension, a mask or a slice, got {rows!r:.80}; "
            "a single sample is take([0])"
        )
    return at


def agreement(one: Scores[Any], other: Scores[Any]) -> dict[str, bool]:
    """Of what must be the same to put scores together, whether it is."""
    plain = ("family", "num_classes", "carried", "classes", "split")
    same = {name: getattr(one, name) == getattr(other, name) for name in plain}
    for name in ("labels", "ids", "counts"):
        same[name] = (getattr(one, name) is None) == (getattr(other, name) is None)
    if one.counts is not None and other.counts is not None and same["num_classes"]:
        same["counts"] = np.array_equal(arrays.as_numpy(one.counts), arrays.as_numpy(other.counts))
    return same


def taken(column: Any, at: Any) -> Any:
    """Some entries of a column of any kind."""
    if isinstance(at, slice) or isinstance(column, np.ndarray):
        return column[at]
    return column[arrays.to_kind(at, column)]


def joined(columns: Sequence[Any]) -> Any:
    """Columns one after the other, in the kind of the first; None if one is missing."""
    if any(column is None for column in columns):
        return None
    parts = [c if isinstance(c, np.ndarray) else arrays.as_numpy(c) for c in columns]
    return arrays.to_kind(np.concatenate(parts), columns[0])
