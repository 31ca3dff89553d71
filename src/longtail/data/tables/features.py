"""Features of a frozen backbone in one file, read from the disk as they are looked at.

A safetensors file: `labels` (N,) int64, and last `features` (N, D) in float16 or float32, the rows
of train, validation and test one part after the other. The header's `longtail_features` entry says
how many rows each part has, the names of the classes, and what made the features.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.arrays import Indices, Numbers, refuse_lossy
from longtail.core.blocks import slices
from longtail.core.files import written_whole
from longtail.core.labels import check_labels, check_num_classes
from longtail.core.scores import Split
from longtail.core.tensor_file import (
    Format,
    Versioned,
    begin_tensor_file,
    decode_header,
    map_tensor_file,
)

_KEY, _FORMAT = "longtail_features", Format("feature", "longtail.data.pack_features")
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

FilePath: TypeAlias = str | os.PathLike[str]
Rows: TypeAlias = npt.NDArray[np.floating[Any]]
Parts: TypeAlias = Mapping[Split, tuple[Rows, npt.ArrayLike]]


class Part(NamedTuple):
    """The samples of one split; the rows may lie on the disk."""

    features: Rows
    labels: Indices


class _Header(Versioned):
    sizes: dict[str, int]
    num_classes: int
    classes: tuple[str, ...] | None = None
    made_by: str = ""


@dataclass(frozen=True, eq=False)
class Features:
    """Features and labels of the splits that are there; `made_by` says in words what made them."""

    parts: Mapping[Split, Part]
    num_classes: int
    classes: tuple[str, ...] | None = None
    made_by: str = ""

    @property
    def dim(self) -> int:
        """How many numbers a sample has."""
        return int(next(iter(self.parts.values())).features.shape[1])

    @property
    def counts(self) -> Indices:
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
    def load(cls, path: FilePath) -> Features:
        """Map a file that `pack_features` wrote into memory."""
        source = Path(path)
        if not source.is_file():
            raise FileNotFoundError(f"there is no feature file at {source}")
        metadata, tensors = map_tensor_file(source)
        header = decode_header(metadata.get(_KEY), _Header, source, _FORMAT)
        try:
            parts = _cut(tensors["features"], np.asarray(tensors["labels"]), header.sizes)
            return checked_features(parts, header.num_classes, header.classes, header.made_by)
        except (KeyError, ValueError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(
                f"the header of {source} does not fit what it holds: {reason}"
            ) from error


def pack_features(
    path: FilePath,
    parts: Parts,
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    made_by: str = "",
) -> Features:
    """Write features to one .safetensors file, a block at a time, and map it.

    The parts are features (N, D), of which float64 is stored as float32, and labels, for each
    split. There are as many classes as names, else as the largest label says.

    >>> import tempfile
    >>> rows, labels = np.eye(3, dtype=np.float32), [0, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = pack_features(Path(folder) / "f.safetensors", {"train": (rows, labels)})
    ...     made.part("train").features.shape, made.counts.tolist()
    ((3, 3), [1, 2])
    """
    target = Path(path)
    if target.suffix.lower() != ".safetensors":
        raise ValueError(f"{target} must end in .safetensors to take features; rename it")
    made = checked_features(parts, num_classes, classes, made_by)
    sizes = {str(split): len(part.labels) for split, part in made.parts.items()}
    header = _Header(_FORMAT.versions[-1], sizes, made.num_classes, made.classes, made_by)
    metadata = {_KEY: msgspec.json.encode(header).decode()}
    labels = np.concatenate([part.labels for part in made.parts.values()])
    stored = np.result_type(*(part.features.dtype for part in made.parts.values()))
    dtype = np.dtype(np.float16 if stored == np.float16 else np.float32)
    with written_whole(target) as temporary, temporary.open("wb") as file:
        shape = (len(labels), made.dim)
        begin_tensor_file(file, metadata, {"labels": labels}, "features", dtype, shape)
        for split, part in made.parts.items():
            for at in slices(len(part.labels), made.dim):
                block = np.asarray(part.features[at])
                if not np.isfinite(block).all():
                    row = at.start + int((~np.isfinite(block)).any(axis=1).argmax())
                    raise ValueError(
                        f"features must be finite numbers, got NaN or infinity in row {row} of "
                        f"{split}; the backbone that made them has diverged"
                    )
                file.write(np.ascontiguousarray(block, dtype).data)
    return Features.load(target)


def checked_features(
    parts: Parts,
    num_classes: int | None = None,
    classes: Sequence[str] | None = None,
    made_by: str = "",
) -> Features:
    """Features of arrays as they are, or a ValueError; arguments as of `pack_features`."""
    if not parts or set(parts) - set(SPLITS):
        raise ValueError(
            f"features are of the splits {', '.join(SPLITS)}, got {', '.join(map(str, parts))}"
        )
    checked = {split: _checked(*parts[split], split) for split in SPLITS if split in parts}
    if len({part.features.shape[1] for part in checked.values()}) > 1:
        shapes = ", ".join(f"{split} {part.features.shape}" for split, part in checked.items())
        raise ValueError(f"all splits must have features of one width, got {shapes}")
    labels = np.concatenate([part.labels for part in checked.values()])
    total = num_classes
    if total is None:
        total = int(labels.max()) + 1 if classes is None else len(classes)
    check_labels(labels, check_num_classes(total, len(labels)))
    if classes is not None and len(classes) != total:
        raise ValueError(f"classes must name each of {total} classes, got {len(classes)} names")
    names = None if classes is None else tuple(map(str, classes))
    return Features(checked, total, names, made_by)


def _checked(features: Rows, labels: npt.ArrayLike, split: str) -> Part:
    refuse_lossy(features)
    refuse_lossy(labels)
    if features.ndim != 2 or features.dtype.kind != "f" or not len(features):
        raise ValueError(
            f"features of {split} must be of a floating type and shape (samples, numbers), "
            f"got {features.dtype} of shape {features.shape}"
        )
    indices = np.asarray(labels)
    if indices.dtype.kind not in "iu" or indices.shape != (len(features),):
        raise ValueError(
            f"labels of {split} must be one class index for each of {len(features)} rows, "
            f"got {indices.dtype} of shape {indices.shape}"
        )
    return Part(features, indices.astype(np.int64, copy=False))


def _cut(rows: Rows, labels: Numbers, sizes: Mapping[str, int]) -> dict[Split, Part]:
    """The parts of all rows, as many each as the header says."""
    whole = _checked(rows, labels, "all splits")
    if set(sizes) - set(SPLITS) or min(sizes.values(), default=0) < 0:
        raise ValueError(f"its splits are {sizes}")
    if sum(sizes.values()) != len(labels):
        raise ValueError(f"its splits have {sizes} rows, but there are {len(labels)}")
    ends = np.cumsum([sizes.get(split, 0) for split in SPLITS]).tolist()
    return {
        split: Part(whole.features[start:stop], whole.labels[start:stop])
        for split, start, stop in zip(SPLITS, [0, *ends], ends, strict=False)
        if stop > start
    }
