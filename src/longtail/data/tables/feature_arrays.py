"""Features from arrays that others wrote: .npz with a key for each part, or .npy beside labels.

An .npz has `features` and `labels` of training samples, or `train_features`, `train_labels`, and
the same of validation and test where there are such; `classes` names the classes. Or it has `train`
and `train_label`, and so on, beside `scale`: rows of bytes that are multiplied by it, number by
number. Labels may be names, of that list or, without one, in the order of their names. The rows of
an .npy are of the train part, unless `split` says of each row whether it is train, validation or
test.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.scores import Split
from longtail.data.tables import arrays
from longtail.data.tables.errors import naming
from longtail.data.tables.features import SPLITS, Features, FilePath, checked_features
from longtail.data.tables.label_codes import LabelCodes, are_whole_numbers, as_names, classes_of

_Parts: TypeAlias = Mapping[Split, tuple[Numbers, Numbers]]
_Named: TypeAlias = tuple[_Parts, tuple[str, ...] | None]  # with the names of the classes


def read_features(
    path: FilePath, labels: FilePath | None = None, split: FilePath | None = None
) -> Features:
    """Features of a file of longtail (.safetensors, memory-mapped), or of arrays (.npz, .npy).

    Beside an .npy the labels are another, and so are the words train, validation and test, one a
    row, if there is more than a train part.
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
            parts, classes = _of_npy(source, Path(labels), None if split is None else Path(split))
        case _:
            raise ValueError(
                f"features are read from .safetensors, .npz or .npy files, got {source.name}"
            )
    with naming(str(source)):
        return checked_features(parts, classes=classes, made_by=source.name)


def read_feature_rows(path: FilePath) -> Numbers:
    """All features of a file that need not have labels; of an .npz those called `features`."""
    source = Path(path)
    if source.suffix.lower() == ".npy":
        return arrays.map_npy(source)
    if source.suffix.lower() == ".npz" and "features" in arrays.npz_names(source):
        return arrays.load_npz(source, ["features"])["features"]
    parts = read_features(source).parts.values()
    return np.concatenate([part.features for part in parts])


def _of_npz(source: Path) -> _Named:
    names = arrays.npz_names(source)
    if {"scale", "train", "train_label"} <= set(names):
        return _of_bytes(source, names)
    prefixes: dict[str, Split] = {"": "train", **{f"{split}_": split for split in SPLITS}}
    _check_names(source, names, prefixes)
    pairs = {
        split: (f"{prefix}features", f"{prefix}labels")
        for prefix, split in prefixes.items()
        if f"{prefix}features" in names
    }
    if "train" not in pairs:
        raise ValueError(
            f"{source} has the arrays {', '.join(names) or 'none'}; it needs features and labels, "
            "or train_features and train_labels"
        )
    for pair in pairs.values():  # before anything is unpacked
        shape, length = (arrays.npz_header(source, name).shape for name in pair)
        if len(shape) != 2 or length != shape[:1]:
            raise ValueError(
                f"{source} must have {pair[0]} of shape (samples, numbers) and {pair[1]} of shape "
                f"(samples,), one label for each row, got shapes {shape} and {length}"
            )
    beside = ["classes"] if "classes" in names else []
    stored = arrays.load_npz(source, [*chain.from_iterable(pairs.values()), *beside])
    classes = as_names(stored["classes"], f"'classes' of {source}") if beside else None
    parts = {split: (stored[rows], stored[labels]) for split, (rows, labels) in pairs.items()}
    return _numbered(parts, classes, source)


def _of_bytes(source: Path, names: Container[str]) -> _Named:
    """Of `data/caltech101`, and of sets stored like it."""
    splits = [split for split in SPLITS if split in names and f"{split}_label" in names]
    beside = ["label_names"] if "label_names" in names else []
    of_splits = [name for split in splits for name in (split, f"{split}_label")]
    stored = arrays.load_npz(source, [*of_splits, "scale", *beside])
    scale = stored["scale"].astype(np.float32)
    for split in splits:
        if stored[split].shape[1:] != scale.shape:
            raise ValueError(
                f"{source} must have a scale for each number of a row, got {split} of shape "
                f"{stored[split].shape} and {scale.shape} scales"
            )
    classes = as_names(stored["label_names"], f"'label_names' of {source}") if beside else None
    return {
        split: (stored[split] * scale, stored[f"{split}_label"].astype(np.int64))
        for split in splits
    }, classes


def _of_npy(source: Path, labels: Path, split: Path | None) -> _Named:
    rows = arrays.map_npy(source)
    for beside in filter(None, (labels, split)):  # before they are loaded
        shape = arrays.npy_header(beside).shape
        if rows.ndim != 2 or shape != (rows.shape[0],):
            raise ValueError(
                "features must have a row a sample, labels and split one entry a sample, got "
                f"features of shape {rows.shape} and shape {shape} in {beside}"
            )
    parts, classes = _numbered({"train": (rows, arrays.load_npy(labels))}, None, labels)
    if split is None:
        return parts, classes
    indices = parts["train"][1]
    words = np.array(as_names(arrays.load_npy(split), str(split)))
    unknown = set(words.tolist()) - set(SPLITS)
    if unknown:
        raise ValueError(
            f"a split is one of {', '.join(SPLITS)}, got {sorted(unknown)[0]!r} in {split}"
        )
    chosen = {name: words == name for name in SPLITS if name in words}
    return {name: (rows[at], indices[at]) for name, at in chosen.items()}, classes


def _numbered(parts: _Parts, classes: tuple[str, ...] | None, source: Path) -> _Named:
    """The same with labels that are names as class indices, and the names of the classes."""
    if all(labels.dtype.kind not in "US" for _, labels in parts.values()):
        return parts, classes
    codes = {
        split: LabelCodes.of_array(labels, f"labels of {split} in {source}")
        for split, (_, labels) in parts.items()
    }
    values = {value for each in codes.values() for value in each.values}
    names: tuple[str, ...] | None = classes
    number = [split for split, each in codes.items() if each.stored_as_numbers]
    if names is None and not number:
        names = tuple(sorted(values))  # without a list the classes are in the order of their names
    elif names is None and not are_whole_numbers(values):
        text = next(split for split in codes if split not in number)
        raise ValueError(
            f"the labels of {number[0]} in {source} are numbers, but those of {text} names; save "
            "both as class indices, or beside them the names of the classes in their order: classes"
        )
    num_classes = len(names or classes_of(values, len(values), str(source)))
    return {
        split: (rows, codes[split].as_indices(num_classes, names, f"labels of {split} in {source}"))
        for split, (rows, _) in parts.items()
    }, names


def _check_names(source: Path, names: Sequence[str], prefixes: Container[str]) -> None:
    """Raise for arrays that look like a part but would not be read."""
    for name in names:
        ending = next((what for what in ("features", "labels") if name.endswith(what)), None)
        if ending is None:
            continue
        prefix = name.removesuffix(ending)
        other = prefix + ("labels" if ending == "features" else "features")
        if prefix not in prefixes or other not in names:
            wrong = f"no {other} beside it" if prefix in prefixes else f"its splits are {SPLITS}"
            raise ValueError(f"{source} has an array {name} that cannot be used: {wrong}")
