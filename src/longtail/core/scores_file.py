"""The file behind Scores: one safetensors file, its header a JSON text. No pickle.

Tensors: `logits`, and where known `labels`, `counts` and `carried` (log-probabilities, float64).
The header's `longtail` entry holds the rest, with a version so that later readers know it.
"""

import os
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

import msgspec
import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.prior import Prior
from longtail.core.score_checks import check_written
from longtail.core.tensor_file import Format, Versioned, decode_header, map_tensor_file

FORMAT = Format("scores", "Scores.save")
Split: TypeAlias = Literal["train", "validation", "test"]


class Header(Versioned):
    """What the JSON header says; `arrays` is for readers of the first release."""

    arrays: Literal["torch", "numpy"] = "numpy"
    classes: tuple[str, ...] | None = None
    split: Split | None = None
    ids: tuple[str, ...] | None = None


class Stored(TypedDict):
    """What a scores file holds: the arguments of Scores."""

    logits: Numbers
    labels: Numbers | None
    carried: Prior | None
    counts: Numbers | None
    classes: tuple[str, ...] | None
    split: Split | None
    ids: Numbers | tuple[str, ...] | None


def described(
    carried: Prior | None, classes: tuple[str, ...] | None, split: Split | None, ids: Numbers | None
) -> tuple[dict[str, Numbers], dict[str, str]]:
    """What a file says of its samples: tensors, and the texts of its header."""
    tensors: dict[str, Numbers] = {}
    if carried is not None:
        tensors["carried"] = carried.log
        if carried.counts is not None:
            tensors["carried_counts"] = carried.counts
    names = None
    if ids is not None and ids.dtype.kind == "U":
        names = tuple(ids.tolist())
    elif ids is not None:
        fits = ids.dtype != np.uint64 or not (ids >> np.uint64(63)).any()
        tensors["ids"] = ids.astype(np.int64) if fits else ids
    check_written(classes or (), "the scores")
    check_written(names or (), "the scores", "id")
    header = Header(version=FORMAT.versions[-1], classes=classes, split=split, ids=names)
    return tensors, {"format": "pt", "longtail": msgspec.json.encode(header).decode()}


def read(path: str | os.PathLike[str]) -> Stored:
    """Read the file, or raise FileNotFoundError or a ValueError that says what is wrong with it."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no scores file at {source}")
    try:
        metadata, mapped = map_tensor_file(source)
        arrays = {name: np.array(array) for name, array in mapped.items()}
    except (ValueError, OSError) as error:
        raise ValueError(f"{error}; scores files are made by {FORMAT.made_by}") from error
    if "longtail" not in metadata or "logits" not in arrays:
        raise ValueError(
            f"{source} is a safetensors file but not one of longtail's scores (it has "
            f"{', '.join(sorted(arrays)) or 'no tensors'}); build Scores(logits, ...) from it"
        )
    header = decode_header(metadata["longtail"], Header, source, FORMAT)
    log, counts = arrays.get("carried"), arrays.get("carried_counts")
    return Stored(
        logits=arrays["logits"],
        labels=arrays.get("labels"),
        carried=None if log is None else Prior(log, counts),
        counts=arrays.get("counts"),
        classes=header.classes,
        split=header.split,
        ids=arrays.get("ids") if header.ids is None else header.ids,
    )
