"""Labels in .npy and .npz files, without pickles; in .npz by split and with class names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from longtail.data.files.arrays import load_npy, load_npz, npz_names
from longtail.data.files.label_codes import LabelCodes, as_names
from longtail.data.label_files.splits import WHOLE, split_named

_LABELS = ("labels", "label", "y")
_CLASS_NAMES = ("classes", "class_names", "label_names")


def npy_labels(path: Path) -> dict[str, LabelCodes]:
    """The one array of the file, under "all"."""
    return {WHOLE: _checked(load_npy(path), str(path))}


def npz_labels(
    path: Path, column: str | int | None = None
) -> tuple[dict[str, LabelCodes], tuple[str, ...] | None]:
    """The labels of each split, or all of them under "all"; and the class names if there are any.

    Without a `column` the arrays are those called as `train_label` and `y_test`, or "labels".
    """
    names = npz_names(path)
    chosen = _label_arrays(names, column, path)
    usual = (*(f"{name.removesuffix('s')}_names" for name in chosen.values()), *_CLASS_NAMES)
    called = next((name for name in usual if name in names), None)
    arrays = load_npz(path, [*chosen.values(), *filter(None, [called])])
    classes = None if called is None else as_names(arrays[called], f"{called!r} of {path}")
    labels = {
        split: _checked(arrays[name], f"{name!r} of {path}") for split, name in chosen.items()
    }
    return labels, classes


def _label_arrays(names: Sequence[str], column: str | int | None, path: Path) -> dict[str, str]:
    """From the split to the name of its array."""
    if column in names:
        return {WHOLE: str(column)}
    by_split = {} if column is not None else _named_by_split(names)
    single = next((name for name in _LABELS if name in names), None)
    if column is not None or not (by_split or single):
        asked = "labels" if column is None else column
        raise ValueError(
            f"{path} has no array {asked!r}, only {', '.join(sorted(names)) or 'nothing'}; "
            "say with column (--column) which one holds the labels"
        )
    return by_split or {WHOLE: str(single)}


def _named_by_split(names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        words = name.lower().split("_")
        split = next(filter(None, map(split_named, words)), None)
        if len(words) == 2 and split and set(words) & set(_LABELS):
            found.setdefault(split, name)
    return found


def _checked(stored: npt.NDArray[Any], where: str) -> LabelCodes:
    if not stored.size:
        raise ValueError(f"{where} has no labels in it; give one a sample")
    return LabelCodes.of_array(stored, where)
