"""The file behind Scores: one safetensors file, its header a JSON text. No pickle.

Tensors: `logits`, and where known `labels`, `counts` and `carried` (log-probabilities, float64).
The header's `longtail` entry holds the rest, with a version so that later readers know it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from longtail.core.arrays import Array, as_kind_of, as_tensor
from longtail.core.prior import Prior
from longtail.core.tensor_saving import save_tensors

VERSION = 1


class Header(msgspec.Struct):
    """What the JSON header says."""

    version: int
    arrays: Literal["torch", "numpy"]
    classes: tuple[str, ...] | None = None
    split: Literal["train", "validation", "test"] | None = None


@dataclass(frozen=True)
class StoredScores:
    """What a scores file holds."""

    arrays: dict[str, Array]
    carried: Prior | None
    classes: tuple[str, ...] | None
    split: Literal["train", "validation", "test"] | None


def write(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Array | None],
    carried: Prior | None,
    classes: tuple[str, ...] | None,
    split: Literal["train", "validation", "test"] | None,
) -> None:
    """Write the file, whole or not at all."""
    tensors = {n: as_tensor(a) for n, a in arrays.items() if a is not None}
    if carried is not None:
        tensors["carried"] = carried.log
        if carried.counts is not None:
            tensors["carried_counts"] = carried.counts
    header = Header(
        version=VERSION,
        arrays="numpy" if isinstance(arrays["logits"], np.ndarray) else "torch",
        classes=classes,
        split=split,
    )
    said = {"format": "pt", "longtail": msgspec.json.encode(header).decode()}
    save_tensors(path, tensors, said)


def read(path: str | os.PathLike[str]) -> StoredScores:
    """Read the file, or raise FileNotFoundError or a ValueError that says what is wrong with it."""
    from safetensors import SafetensorError, safe_open

    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no scores file at {place}")
    try:
        with safe_open(place, framework="pt") as file:
            text = (file.metadata() or {}).get("longtail")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{place} cannot be read as a safetensors file ({error}); "
            "scores files are made by Scores.save"
        ) from error
    if text is None or "logits" not in tensors:
        raise ValueError(
            f"{place} is a safetensors file but not one of longtail's scores (it has "
            f"{', '.join(sorted(tensors)) or 'no tensors'}); build Scores(logits, ...) from it"
        )
    header = decode_header(text, place)
    example = np.empty(0) if header.arrays == "numpy" else None
    log, counts = tensors.pop("carried", None), tensors.pop("carried_counts", None)
    return StoredScores(
        arrays={name: as_kind_of(tensor, example) for name, tensor in tensors.items()},
        carried=None if log is None else Prior(log, counts),
        classes=header.classes,
        split=header.split,
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
