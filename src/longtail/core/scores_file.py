"""The file behind Scores: one safetensors file, its header a JSON text. No pickle.

Tensors: `logits`, and where known `labels`, `counts` and `carried` (log-probabilities, float64; of
yes/no labels log odds). The header's `longtail` entry holds the rest, with a version so that later
readers know it: 2 for yes/no labels, of which the first version knows nothing.
"""

import os
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

import msgspec
import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.label_odds import LabelOdds
from longtail.core.prior import Prior
from longtail.core.score_checks import check_written
from longtail.core.tensor_file import Format, Versioned, decode_header, map_tensor_file

FORMAT = Format("scores", "Scores.save", versions=(1, 2))
Split: TypeAlias = Literal["train", "validation", "test"]


class Header(Versioned):
    """What the JSON header says; `arrays` is for readers of the first release."""

    arrays: Literal["torch", "numpy"] = "numpy"
    classes: tuple[str, ...] | None = None
    split: Split | None = None
    ids: tuple[str, ...] | None = None


class LabelHeader(Header):
    """That of scores of either family; files of one class a sample do not name it."""

    family: Literal["softmax", "sigmoid"] = "softmax"
    total: int | None = None  # samples that the odds were counted on


class Stored(TypedDict):
    """What a scores file holds: the arguments of Scores."""

    logits: Numbers
    labels: Numbers | None
    carried: Prior | LabelOdds | None
    counts: Numbers | None
    classes: tuple[str, ...] | None
    split: Split | None
    ids: Numbers | tuple[str, ...] | None
    family: Literal["softmax", "sigmoid"]


def described(
    carried: Prior | LabelOdds | None,
    classes: tuple[str, ...] | None,
    split: Split | None,
    ids: Numbers | None,
    family: Literal["softmax", "sigmoid"] = "softmax",
) -> tuple[dict[str, Numbers], dict[str, str]]:
    """What a file says of its samples: tensors, and the texts of its header."""
    tensors: dict[str, Numbers] = {}
    total = None
    if carried is not None:
        if isinstance(carried, LabelOdds):
            log, counts, total = carried.logit, carried.positives, carried.total
        else:
            log, counts = carried.log, carried.counts
        tensors["carried"] = log
        if counts is not None:
            tensors["carried_counts"] = counts
    names = None
    if ids is not None and ids.dtype.kind == "U":
        names = tuple(ids.tolist())
    elif ids is not None:
        fits = ids.dtype != np.uint64 or not (ids >> np.uint64(63)).any()
        tensors["ids"] = ids.astype(np.int64) if fits else ids
    check_written(classes or (), "the scores")
    check_written(names or (), "the scores", "id")
    header = Header(1, classes=classes, split=split, ids=names)
    if family == "sigmoid":
        header = LabelHeader(2, "numpy", classes, split, names, family, total)
    text = msgspec.json.encode(header).decode()
    return tensors, {"format": "pt", "longtail": text}


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
    header = decode_header(metadata["longtail"], LabelHeader, source, FORMAT)
    log, counts = arrays.get("carried"), arrays.get("carried_counts")
    carried: Prior | LabelOdds | None = None
    if log is not None and header.family == "sigmoid":
        carried = LabelOdds(log, counts, header.total)
    elif log is not None:
        carried = Prior(log, counts)
    return Stored(
        logits=arrays["logits"],
        labels=arrays.get("labels"),
        carried=carried,
        counts=arrays.get("counts"),
        classes=header.classes,
        split=header.split,
        ids=arrays.get("ids") if header.ids is None else header.ids,
        family=header.family,
    )
