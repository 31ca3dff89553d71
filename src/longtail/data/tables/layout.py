"""Where things are in a file of scores, as the caller says it or as they are usually called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.tables.errors import MissingError, ObjectsError
from longtail.data.tables.score_table import Kind

# What an array of scores may be called if nobody said: its kind, or what says nothing of it.
_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "logits": ("logits", "scores", "arr_0"),
    "probs": ("probs", "probabilities", "scores", "arr_0"),
}


@dataclass(frozen=True)
class Layout:
    """Where things are in a file of scores, as far as it does not say so itself.

    Attributes:
        scores: The array of .npz or .safetensors, or the list column of .parquet, that holds the
            scores. By default the one named "logits" or "probs".
        labels: The array, or the column by its name or its place counted from 0, that holds the
            labels. By default "labels" or "label".
        ids: The array or column of what tells the samples apart. By default "ids" or "id".
        skip: Columns that are none of these, by name or place.
        header: Whether the first line of text names the columns. By default it does if a field
            of it is no number.
        delimiter: Between the fields of text. By default a tab in .tsv, else a comma.
    """

    scores: str | None = None
    labels: str | int | None = None
    ids: str | int | None = None
    skip: Sequence[str | int] = ()
    header: bool | None = None
    delimiter: str | None = None


def floating(dtype: np.dtype[Any], path: Path) -> np.dtype[Any]:
    """The type that numbers of a stored type are read as: float16 to float64, the machine's own."""
    if dtype.hasobject:
        raise ObjectsError(
            f"{path} holds its scores as Python objects, which only a pickle could read; save them "
            "as numbers: numpy.array(scores, dtype=float)"
        )
    if dtype.kind not in "iuf":
        raise ValueError(f"{path} must hold scores as real numbers, got {dtype}; convert them")
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.kind != "f" and dtype.itemsize <= 2 else np.float64)


def check_shape(shape: Sequence[int], path: Path) -> tuple[int, int]:
    """The shape of a table of scores, or a ValueError."""
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(
            f"{path} must have a row a sample and a column for each of two or more classes, "
            f"got shape {tuple(shape)}; of a binary classifier give both columns"
        )
    if not shape[0]:
        raise ValueError(f"{path} has no rows; make it again from at least one sample")
    return shape[0], shape[1]


def scores_name(names: Sequence[str], kind: Kind, asked: str | None, path: Path) -> str:
    """Which of the named arrays holds the scores, or a ValueError that lists them."""
    if asked is not None:
        return str(optional_name(names, (), asked, path))
    chosen = next((name for name in _NAMES[kind] if name in names), None)
    if chosen is not None:
        return chosen
    other: Kind = "probs" if kind == "logits" else "logits"
    contradicted = next((name for name in _NAMES[other] if name in names), None)
    if contradicted is not None:
        raise ValueError(
            f"{path} was said to hold {kind}, but its array is called {contradicted!r}; "
            f"say --kind {other}, or name the array with --array {contradicted} if it is one of "
            f"{kind} after all"
        )
    raise ValueError(
        f"{path} has no array {kind!r}, only {', '.join(sorted(names)) or 'nothing'}; say which "
        f"holds the {kind} with --array (in Python Layout(scores=...))"
    )


def optional_name(
    names: Sequence[str], usual: Sequence[str], asked: str | int | None, path: Path
) -> str | None:
    """The name that was asked for, or the usual one that is there, or None."""
    if asked is None:
        return next((name for name in usual if name in names), None)
    if asked not in names:
        listed = ", ".join(sorted(names)) or "nothing"
        raise MissingError(
            asked, f"{path} has no array {asked!r}, only {listed}; name one of these"
        )
    return str(asked)
