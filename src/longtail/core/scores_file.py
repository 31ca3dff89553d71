"""The file behind Scores: one safetensors file, its header a JSON text. No pickle.

Tensors: `logits`, and where known `labels`, `counts` and `carried` (log-probabilities, float64).
The header's `longtail` entry holds the rest, with a version so that later readers know it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.prior import Prior
from longtail.core.tensor_file import read_tensor_file, save_tensors

VERSION = 1


class Header(msgspec.Struct):
    """What the JSON header says; `arrays` is for readers of the first release."""

    version: int
    arrays: Literal["torch", "numpy"] = "numpy"
    classes: tuple[str, ...] | None = None
    split: Literal["train", "validation", "test"] | None = None
    ids: tuple[str, ...] | None = None


@dataclass(frozen=True)
class StoredScores:
    """What a scores file holds."""

    arrays: dict[str, npt.NDArray[Any]]
    carried: Prior | None
    classes: tuple[str, ...] | None
    split: Literal["train", "validation", "test"] | None
    ids: npt.NDArray[Any] | None


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, npt.NDArray[Any]],
    carried: Prior | None,
    classes: tuple[str, ...] | None,
    split: Literal["train", "validation", "test"] | None,
    ids: npt.NDArray[Any] | None = None,
) -> None:
    """Write the file, whole or not at all."""
    tensors, metadata = described(carried, classes, split, ids)
    save_tensors(path, {**arrays, **tensors}, metadata)


def described(
    carried: Prior | None,
    classes: tuple[str, ...] | None,
    split: Literal["train", "validation", "test"] | None,
    ids: npt.NDArray[Any] | None,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, str]]:
    """What a file says of its samples: tensors, and the texts of its header."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    if carried is not None:
        tensors["carried"] = carried.log
        if carried.counts is not None:
            tensors["carried_counts"] = carried.counts
    names = None
    if ids is not None and ids.dtype.kind == "U":
        names = tuple(ids.tolist())
    elif ids is not None:
        tensors["ids"] = ids.astype(np.int64)
    header = Header(version=VERSION, classes=classes, split=split, ids=names)
    return tensors, {"format": "pt", "longtail": msgspec.json.encode(header).decode()}


def read(path: str | os.PathLike[str]) -> StoredScores:
    """Read the file, or raise FileNotFoundError or a ValueError that says what is wrong with it."""
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no scores file at {place}")
    try:
        metadata, arrays = read_tensor_file(place)
    except (ValueError, OSError) as error:
        raise ValueError(f"{error}; scores files are made by Scores.save") from error
    text = metadata.get("longtail")
    if text is None or "logits" not in arrays:
        raise ValueError(
            f"{place} is a safetensors file but not one of longtail's scores (it has "
            f"{', '.join(sorted(arrays)) or 'no tensors'}); build Scores(logits, ...) from it"
        )
    header = decode_header(text, place)
    log, counts = arrays.pop("carried", None), arrays.pop("carried_counts", None)
    numbers = arrays.pop("ids", None)
    return StoredScores(
        arrays=arrays,
        carried=None if log is None else Prior(log, counts),
        classes=header.classes,
        split=header.split,
        ids=numbers if header.ids is None else np.array(header.ids),
    )


def decode_header(text: str, place: Path) -> Header:
    """What the header says, or a ValueError that names the file."""
    try:
        header = msgspec.json.decode(text, type=Header)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the header of {place} is damaged: {error}") from error
    if header.version != VERSION:
        raise ValueError(
            f"{place} was written in version {header.version} of the scores format, this longtail "
            f"reads version {VERSION}; use the longtail that wrote it, or a newer one"
        )
    return header
