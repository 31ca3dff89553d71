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
from typing import Any

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
    place = Path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no feature file at {place}")
    kind = place.suffix.lower()
    if kind != ".npy" and (labels is not None or split is not None):
        raise ValueError(f"labels and split belong to an .npy of features; {place} holds its own")
    if kind == ".safetensors":
        return Features.load(place)
    if kind == ".npz":
        return _of_npz(place)
    if kind == ".npy":
        return _of_npy(place, labels, split)
    raise ValueError(f"features are read from .safetensors, .npz or .npy files, got {place.name}")


def _of_npz(place: Path) -> Features:
    there = npz_names(place)
    _check_names(place, there)
    pairs: dict[Split, tuple[str, str]] = {}
    for split in SPLITS:
        for prefix in (f"{split}_", *([""] if split == "train" else [])):
            if f"{prefix}features" in there:
                pairs.setdefault(split, (f"{prefix}features", f"{prefix}labels"))
    if "train" not in pairs:
        raise ValueError(
            f"{place} has the arrays {', '.join(there) or 'none'}; it needs features and labels, "
            "or train_features and train_labels"
        )
    for rows, known in pairs.values():
        _check_lengths(place, rows, known)
    named = ["classes"] if "classes" in there else []
    arrays = load_npz(place, [*(name for pair in pairs.values() for name in pair), *named])
    names = as_names(arrays["classes"], f"'classes' of {place}") if named else None
    parts: dict[Split, tuple[Any, Any]] = {
        split: (arrays[rows], arrays[known]) for split, (rows, known) in pairs.items()
    }
    parts, names = _numbered(parts, names, place)
    with naming(str(place)):
        return checked_features(parts, classes=names, made_by=place.name)


def _numbered(
    parts: Mapping[Split, tuple[Any, Any]], classes: tuple[str, ...] | None, place: Path
) -> tuple[dict[Split, tuple[Any, Any]], tuple[str, ...] | None]:
    """The same with labels that are names as class indices, and the names of the classes."""
    if all(labels.dtype.kind not in "US" for _, labels in parts.values()):
        return dict(parts), classes
    codes = {
        split: LabelCodes.of_array(labels, f"labels of {split} in {place}")
        for split, (_, labels) in parts.items()
    }
    # Without a list the classes are in the order of their names.
    names = classes or tuple(sorted({value for each in codes.values() for value in each.values}))
    made = {
        split: (rows, codes[split].as_indices(len(names), names, f"labels of {split} in {place}"))
        for split, (rows, _) in parts.items()
    }
    return made, names


def _check_lengths(place: Path, rows: str, known: str) -> None:
    """Raise for arrays that are not of the same samples, before they are unpacked."""
    features, labels = npz_header(place, rows).shape, npz_header(place, known).shape
    if len(features) != 2 or len(labels) != 1 or features[0] != labels[0]:
        raise ValueError(
            f"{place} must have {rows} of shape (samples, numbers) and {known} of shape "
            f"(samples,), one label for each row, got shapes {features} and {labels}"
        )


def _of_npy(
    place: Path, labels: str | os.PathLike[str] | None, split: str | os.PathLike[str] | None
) -> Features:
    if labels is None:
        raise ValueError(f"{place} holds no labels; give an .npy of them with --labels")
    rows = map_npy(place)
    _check_one_a_row(Path(labels), rows)
    given: dict[Split, tuple[Any, Any]] = {"train": (rows, load_npy(Path(labels)))}
    numbered, classes = _numbered(given, None, Path(labels))
    if split is None:
        with naming(str(place)):
            return checked_features(numbered, classes=classes, made_by=place.name)
    known = numbered["train"][1]
    _check_one_a_row(Path(split), rows)
    words = np.array(as_names(load_npy(Path(split)), str(split)))
    unknown = set(words.tolist()) - set(SPLITS)
    if unknown:
        raise ValueError(
            f"a split is one of {', '.join(SPLITS)}, got {sorted(unknown)[0]!r} in {split}"
        )
    parts: dict[Split, tuple[Any, Any]] = {
        name: (rows[words == name], known[words == name]) for name in SPLITS if name in words
    }
    with naming(str(place)):
        return checked_features(parts, classes=classes, made_by=place.name)


def _check_one_a_row(place: Path, rows: npt.NDArray[Any]) -> None:
    """Raise for a file that does not have one entry a row, before it is loaded."""
    shape = npy_header(place).shape
    if rows.ndim != 2 or shape != (rows.shape[0],):
        raise ValueError(
            "features must have a row a sample, labels and split one entry a sample, got features "
            f"of shape {rows.shape} and shape {shape} in {place}"
        )


def _check_names(place: Path, arrays: Sequence[str]) -> None:
    """Raise for arrays that look like a part but would not be read."""
    prefixes = ("", *(f"{split}_" for split in SPLITS))
    known = {f"{prefix}{what}" for prefix in prefixes for what in ("features", "labels")}
    for name in arrays:
        ending = next((what for what in ("features", "labels") if name.endswith(what)), None)
        if ending is None:
            continue
        other = name[: -len(ending)] + ("labels" if ending == "features" else "features")
        if name not in known or other not in arrays:
            wrong = f"no {other} beside it" if name in known else f"its splits are {SPLITS}"
            raise ValueError(f"{place} has an array {name} that cannot be used: {wrong}")
