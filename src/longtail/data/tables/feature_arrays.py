"""Features from arrays that others wrote: .npz with a key for each part, or .npy beside labels.

An .npz has `features` and `labels` of training samples, or `train_features`, `train_labels`, and
the same of validation and test where there are such; `classes` names the classes. Labels may be
names, of that list or, without one, in the order of their names. The rows of an
.npy are of the train part, unless `split` says of each row whether it is train, validation or test.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longtail.core.scores import Split
from longtail.data.tables.arrays import (
    load_npy,
    load_npz,
    map_npy,
    npy_header,
    npz_header,
    npz_names,
)
from longtail.data.tables.errors import naming
from longtail.data.tables.features import SPLITS, Features, checked_features
from longtail.data.tables.label_codes import LabelCodes, as_names

_Parts: TypeAlias = Mapping[Split, tuple[npt.NDArray[Any], npt.NDArray[Any]]]


def read_features(
    path: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    split: str | os.PathLike[str] | None = None,
) -> Features:
    """Features of a file of longtail (.safetensors, memory-mapped), or of arrays (.npz, .npy).

    Args:
        path: The file.
        labels: For an .npy, the .npy of its labels.
        split: For an .npy, the .npy with the words train, validation and test, one a row.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no feature file at {source}")
    ending = source.suffix.lower()
    if ending != ".npy" and (labels is not None or split is not None):
        raise ValueError(f"labels and split belong to an .npy of features; {source} holds its own")
    match ending:
        case ".safetensors":
            return Features.load(source)
        case ".npz":
            parts, classes = _of_npz(source)
        case ".npy":
            if labels is None:
                raise ValueError(f"{source} holds no labels; give an .npy of them with --labels")
            parts, classes = _of_npy(source, Path(labels), split)
        case _:
            raise ValueError(
                f"features are read from .safetensors, .npz or .npy files, got {source.name}"
            )
    with naming(str(source)):
        return checked_features(parts, classes=classes, made_by=source.name)


def _of_npz(source: Path) -> tuple[_Parts, tuple[str, ...] | None]:
    arrays = npz_names(source)
    _check_names(source, arrays)
    pairs: dict[Split, tuple[str, str]] = {
        split: (f"{split}_features", f"{split}_labels")
        for split in SPLITS
        if f"{split}_features" in arrays
    }
    if "features" in arrays:
        pairs.setdefault("train", ("features", "labels"))
    if "train" not in pairs:
        raise ValueError(
            f"{source} has the arrays {', '.join(arrays) or 'none'}; it needs features and labels, "
            "or train_features and train_labels"
        )
    for pair in pairs.values():  # before anything is unpacked
        rows, labels = (npz_header(source, name).shape for name in pair)
        if len(rows) != 2 or len(labels) != 1 or rows[0] != labels[0]:
            raise ValueError(
                f"{source} must have {pair[0]} of shape (samples, numbers) and {pair[1]} of shape "
                f"(samples,), one label for each row, got shapes {rows} and {labels}"
            )
    named = ["classes"] if "classes" in arrays else []
    stored = load_npz(source, [*(name for pair in pairs.values() for name in pair), *named])
    classes = as_names(stored["classes"], f"'classes' of {source}") if named else None
    parts = {split: (stored[name], stored[beside]) for split, (name, beside) in pairs.items()}
    return _numbered(parts, classes, source)


def _of_npy(
    source: Path, labels: Path, split: str | os.PathLike[str] | None
) -> tuple[_Parts, tuple[str, ...] | None]:
    rows = map_npy(source)
    for beside in (labels, *([] if split is None else [Path(split)])):  # before they are loaded
        shape = npy_header(beside).shape
        if rows.ndim != 2 or shape != (rows.shape[0],):
            raise ValueError(
                "features must have a row a sample, labels and split one entry a sample, got "
                f"features of shape {rows.shape} and shape {shape} in {beside}"
            )
    parts, classes = _numbered({"train": (rows, load_npy(labels))}, None, labels)
    if split is None:
        return parts, classes
    indices = parts["train"][1]
    words = np.array(as_names(load_npy(Path(split)), str(split)))
    unknown = set(words.tolist()) - set(SPLITS)
    if unknown:
        raise ValueError(
            f"a split is one of {', '.join(SPLITS)}, got {sorted(unknown)[0]!r} in {split}"
        )
    chosen = {name: words == name for name in SPLITS if name in words}
    return {name: (rows[at], indices[at]) for name, at in chosen.items()}, classes


def _numbered(
    parts: _Parts, classes: tuple[str, ...] | None, source: Path
) -> tuple[_Parts, tuple[str, ...] | None]:
    """The same with labels that are names as class indices, and the names of the classes."""
    if all(labels.dtype.kind not in "US" for _, labels in parts.values()):
        return parts, classes
    codes = {
        split: LabelCodes.of_array(labels, f"labels of {split} in {source}")
        for split, (_, labels) in parts.items()
    }
    # Without a list the classes are in the order of their names.
    names = classes or tuple(sorted({value for each in codes.values() for value in each.values}))
    return {
        split: (rows, codes[split].as_indices(len(names), names, f"labels of {split} in {source}"))
        for split, (rows, _) in parts.items()
    }, names


def _check_names(source: Path, arrays: Sequence[str]) -> None:
    """Raise for arrays that look like a part but would not be read."""
    prefixes = ("", *(f"{split}_" for split in SPLITS))
    usual = {f"{prefix}{what}" for prefix in prefixes for what in ("features", "labels")}
    for name in arrays:
        ending = next((what for what in ("features", "labels") if name.endswith(what)), None)
        if ending is None:
            continue
        other = name[: -len(ending)] + ("labels" if ending == "features" else "features")
        if name not in usual or other not in arrays:
            wrong = f"no {other} beside it" if name in usual else f"its splits are {SPLITS}"
            raise ValueError(f"{source} has an array {name} that cannot be used: {wrong}")
