"""Features of a frozen backbone in one file, read from the disk as they are looked at.

A safetensors file: `labels` (N,) int64, and last `features` (N, D) in float16 or float32, the rows
of train, validation and test one part after the other. The header's `longtail_features` entry says
how many rows each part has, the names of the classes, and what made the features. Training counts
are those of the train part.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.arrays import refuse_lossy
from longtail.core.files import written_whole
from longtail.core.labels import check_num_classes
from longtail.core.scores import Split
from longtail.core.tensor_file import begin_tensor_file, map_tensor_file
from longtail.core.tensors import label_tensor

_VERSION = 1
_BLOCK = 2**22  # numbers written at once
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

Rows = npt.NDArray[np.floating[Any]]


class Part(NamedTuple):
    """The samples of one split; the rows may lie on the disk."""

    features: Rows
    labels: npt.NDArray[np.int64]


class Header(msgspec.Struct):
    """What the JSON header says."""

    version: int
    sizes: dict[str, int]
    num_classes: int
    classes: tuple[str, ...] | None = None
    made_by: str = ""


@dataclass(frozen=True, eq=False)
class Features:
    """Features and labels of up to three splits.

    Attributes:
        parts: The splits that are there.
        num_classes: How many classes there are.
        classes: Their names, if known.
        made_by: What made the features, in words.
    """

    parts: Mapping[Split, Part]
    num_classes: int
    classes: tuple[str, ...] | None = None
    made_by: str = ""

    @property
    def dim(self) -> int:
        """How many numbers a sample has."""
        return int(next(iter(self.parts.values())).features.shape[1])

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Training samples of each class."""
        return np.bincount(self.part("train").labels, minlength=self.num_classes)

    def part(self, split: Split) -> Part:
        """One split, or a ValueError if it is not there."""
        if split not in self.parts:
            raise ValueError(
                f"these features have no {split} part, only {', '.join(self.parts)}; "
                "pack one with them, or hold out some of the train part"
            )
        return self.parts[split]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Features:
        """Map a file that `pack_features` wrote into memory."""
        place = Path(path)
        if not place.is_file():
            raise FileNotFoundError(f"there is no feature file at {place}")
        said, tensors = map_tensor_file(place)
        header = _decode(said.get("longtail_features"), place)
        features, labels = _checked_tensors(tensors, header, place)
        parts: dict[Split, Part] = {}
        start = 0
        for split in SPLITS:
            stop = start + header.sizes.get(split, 0)
            if stop > start:
                parts[split] = Part(features[start:stop], labels[start:stop])
            start = stop
        return cls(parts, header.num_classes, header.classes, header.made_by)


def pack_features(
    path: str | os.PathLike[str],
    parts: Mapping[Split, tuple[Rows, npt.ArrayLike]],
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    made_by: str = "",
) -> Features:
    """Write features to one file, a block at a time, and map it.

    Args:
        path: A .safetensors file; it replaces an existing one whole.
        parts: Features of shape (N, D), of a floating type, and labels, for each split. Float64 is
            stored as float32.
        num_classes: How many classes there are; by default as many as there are names, else as the
            largest label says.
        classes: The names of the classes.
        made_by: What made the features, in words.

    >>> import tempfile
    >>> rows, labels = np.eye(3, dtype=np.float32), [0, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = pack_features(Path(folder) / "f.safetensors", {"train": (rows, labels)})
    ...     made.part("train").features.shape, made.counts.tolist()
    ((3, 3), [1, 2])
    """
    place = Path(path)
    if place.suffix.lower() != ".safetensors":
        raise ValueError(f"{place} must end in .safetensors to take features; rename it")
    made = checked_features(parts, num_classes, classes, made_by)
    header = Header(
        version=_VERSION,
        sizes={str(split): len(part.labels) for split, part in made.parts.items()},
        num_classes=made.num_classes,
        classes=made.classes,
        made_by=made_by,
    )
    _write(place, made.parts, header)
    return Features.load(place)


def checked_features(
    parts: Mapping[Split, tuple[Rows, npt.ArrayLike]],
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    made_by: str = "",
) -> Features:
    """Features of arrays as they are, or a ValueError; arguments as of `pack_features`."""
    wrong = [split for split in parts if split not in SPLITS]
    if wrong or not parts:
        raise ValueError(
            f"features are of the splits {', '.join(SPLITS)}, got {', '.join(map(str, parts))}"
        )
    checked = {split: _checked(*parts[split], split) for split in SPLITS if split in parts}
    if len({part.features.shape[1] for part in checked.values()}) > 1:
        shapes = ", ".join(f"{split} {part.features.shape}" for split, part in checked.items())
        raise ValueError(f"all splits must have features of one width, got {shapes}")
    most = 1 + max(int(part.labels.max()) for part in checked.values())
    total = num_classes or (len(classes) if classes is not None else most)
    check_num_classes(total, sum(len(part.labels) for part in checked.values()))
    for part in checked.values():
        label_tensor(part.labels, total)
    if classes is not None and len(classes) != total:
        raise ValueError(f"classes must name each of {total} classes, got {len(classes)} names")
    names = None if classes is None else tuple(map(str, classes))
    return Features(checked, total, names, made_by)


def _write(place: Path, parts: Mapping[Split, Part], header: Header) -> None:
    stored = np.result_type(*(part.features.dtype for part in parts.values()))
    dtype = np.dtype(np.float16 if stored == np.float16 else np.float32)
    width = next(iter(parts.values())).features.shape[1]
    with written_whole(place) as temporary, temporary.open("wb") as file:
        begin_tensor_file(
            file,
            metadata={"longtail_features": msgspec.json.encode(header).decode()},
            small={"labels": np.concatenate([part.labels for part in parts.values()])},
            name="features",
            dtype=dtype,
            shape=(sum(header.sizes.values()), width),
        )
        rows = max(1, _BLOCK // width)
        for split, part in parts.items():
            for start in range(0, len(part.labels), rows):
                block = np.asarray(part.features[start : start + rows])
                if not np.isfinite(block).all():
                    at = start + int((~np.isfinite(block)).any(axis=1).argmax())
                    raise ValueError(
                        f"features must be finite numbers, got NaN or infinity in row {at} of "
                        f"{split}; the backbone that made them has diverged"
                    )
                file.write(np.ascontiguousarray(block, dtype).data)


def _checked(features: Rows, labels: npt.ArrayLike, split: str) -> Part:
    refuse_lossy(features)
    refuse_lossy(labels)
    if features.ndim != 2 or features.dtype.kind != "f" or not len(features):
        raise ValueError(
            f"features of {split} must be of a floating type and shape (samples, numbers), "
            f"got {features.dtype} of shape {features.shape}"
        )
    known = np.asarray(labels)
    if known.dtype.kind not in "iu" or known.shape != (len(features),):
        raise ValueError(
            f"labels of {split} must be one class index for each of {len(features)} rows, "
            f"got {known.dtype} of shape {known.shape}"
        )
    return Part(features, known.astype(np.int64))


def _checked_tensors(
    tensors: Mapping[str, npt.NDArray[Any]], header: Header, place: Path
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Features and labels that fit each other and the header, or a ValueError."""
    sizes, classes = header.sizes, header.classes
    try:
        features, labels = tensors["features"], np.asarray(tensors["labels"])
        _checked(features, labels, "all splits")
        known = not set(sizes) - set(SPLITS) and all(size >= 0 for size in sizes.values())
        if not known or sum(sizes.values()) != len(labels):
            raise ValueError(f"its splits have {sizes} rows, but there are {len(labels)}")
        label_tensor(labels, check_num_classes(header.num_classes, len(labels)))
        if classes is not None and len(classes) != header.num_classes:
            raise ValueError(f"it names {len(classes)} of {header.num_classes} classes")
    except (KeyError, ValueError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"the header of {place} does not fit what it holds: {said}") from error
    return features, labels.astype(np.int64, copy=False)


def _decode(text: str | None, place: Path) -> Header:
    if text is None:
        raise ValueError(
            f"{place} is no feature file of longtail; pack arrays into one with "
            "longtail.engine.pack_features"
        )
    try:
        header = msgspec.json.decode(text, type=Header)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the header of {place} is damaged: {error}") from error
    if header.version != _VERSION:
        raise ValueError(
            f"{place} was written in version {header.version} of the feature format, this longtail "
            f"reads version {_VERSION}; use the longtail that wrote it, or a newer one"
        )
    return header
