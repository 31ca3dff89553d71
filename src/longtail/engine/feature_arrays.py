"""Features from arrays that others wrote: .npz with a key for each part, or .npy beside labels.

An .npz has `features` and `labels` of training samples, or `train_features`, `train_labels`, and
the same of validation and test where there are such; `classes` names the classes. Labels may be
names, of that list or, without one, in the order of their names. The rows of an
.npy are of the train part, unless `split` says of each row whether it is train, validation or test.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longtail.core.scores import Split
from longtail.data.files.errors import ObjectsError
from longtail.data.files.label_codes import LabelCodes
from longtail.data.files.stored_arrays import read_array
from longtail.engine.feature_file import SPLITS, Features, checked_features


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
    try:
        with np.load(place, allow_pickle=False) as stored:
            names = list(stored.files)
        arrays = {name: read_array(place, name) for name in names}
    except ObjectsError:
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ValueError(f"{place} cannot be read as an .npz of numbers ({error})") from error
    _check_names(place, arrays)
    parts: dict[Split, tuple[Any, Any]] = {}
    for split in SPLITS:
        for prefix in (f"{split}_", "" if split == "train" else None):
            rows, known = arrays.get(f"{prefix}features"), arrays.get(f"{prefix}labels")
            if prefix is not None and rows is not None and known is not None:
                parts.setdefault(split, (rows, known))
    if "train" not in parts:
        raise ValueError(
            f"{place} has the arrays {', '.join(arrays) or 'none'}; it needs features and labels, "
            "or train_features and train_labels"
        )
    classes = arrays.get("classes")
    called = None if classes is None else tuple(_text(name) for name in classes.tolist())
    parts, called = _numbered(parts, called, place)
    return checked_features(parts, classes=called, made_by=place.name)


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


def _of_npy(
    place: Path, labels: str | os.PathLike[str] | None, split: str | os.PathLike[str] | None
) -> Features:
    if labels is None:
        raise ValueError(f"{place} holds no labels; give an .npy of them with --labels")
    rows = _loaded(place, mapped=True)
    numbered, classes = _numbered({"train": (rows, _loaded(Path(labels)))}, None, Path(labels))
    known = numbered["train"][1]
    if split is None:
        return checked_features(numbered, classes=classes, made_by=place.name)
    words = np.array([_text(word) for word in _loaded(Path(split)).tolist()])
    if words.shape != known.shape or len(words) != len(rows):
        raise ValueError(
            f"features, labels and split must have one row a sample, got {len(rows)}, "
            f"{len(known)} and {len(words)}"
        )
    unknown = set(words.tolist()) - set(SPLITS)
    if unknown:
        raise ValueError(f"a split is one of {', '.join(SPLITS)}, got {sorted(unknown)[0]!r}")
    parts: dict[Split, tuple[Any, Any]] = {
        name: (rows[words == name], known[words == name]) for name in SPLITS if name in words
    }
    return checked_features(parts, classes=classes, made_by=place.name)


def _check_names(place: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
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


def _loaded(place: Path, mapped: bool = False) -> npt.NDArray[Any]:
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}")
    try:
        if not mapped:
            return read_array(place)
        array: npt.NDArray[Any] = np.load(place, mmap_mode="r", allow_pickle=False)
    except ObjectsError:
        raise
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{place} cannot be read as an .npy of numbers ({error})") from error
    return array


def _text(word: object) -> str:
    return word.decode() if isinstance(word, bytes) else str(word)
