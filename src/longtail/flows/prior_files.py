"""Class counts and priors from files, in the order of the classes of scores or features."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.data import ScoreTable, read_label_counts
from longtail.data.tables.text import read_json


class ClassesOf(NamedTuple):
    """A file, or what else has classes, in whose order values are put."""

    path: Path | str
    num_classes: int
    classes: tuple[str, ...] | None


def read_counts(path: Path, table: ClassesOf | ScoreTable) -> npt.NDArray[np.int64]:
    """Training samples of each class of the table, from a file of counts or of training labels.

    Labels that may be names are names if the table has them all, also those that are numbers.
    """
    parts = read_label_counts(path)
    train = next((parts[name] for name in ("train", "all") if name in parts), None)
    if train is None:
        raise ValueError(
            f"{path} has labels of {', '.join(parts)} only; the counts are those of the training "
            "set: give a file of them"
        )
    present = {label for label, count in train.counts.items() if count}
    are_names = not train.are_indices and present <= set(table.classes or ())
    if are_names or not train.numbered:
        names = _names(path, table)
        if not are_names and (unknown := sorted(set(train.counts) - set(names))):
            raise ValueError(
                f"{path} has a class {unknown[0]!r} that {table.path} does not have; both must "
                "have the same classes"
            )
        return np.array([train.counts.get(name, 0) for name in names], dtype=np.int64)
    counts = {int(label): count for label, count in train.counts.items()}
    if max(counts) >= table.num_classes:
        raise ValueError(
            f"{path} has a class {max(counts)}, but {table.path} has {table.num_classes} "
            f"classes, 0 to {table.num_classes - 1}; both must have the same classes"
        )
    is_list = path.suffix.lower() == ".json" and train.are_indices
    if len(counts) < table.num_classes and is_list:  # labels may lack a class
        raise ValueError(
            f"{path} lists {len(counts)} counts, but {table.path} has {table.num_classes} "
            "classes; list one a class, in their order, or if one of its columns holds the "
            "labels or something else, say --label-column or --skip"
        )
    return np.array([counts.get(index, 0) for index in range(table.num_classes)])


def read_prior(path: Path, table: ClassesOf | ScoreTable) -> Prior:
    """A prior from JSON, a list or an object from class name to weight, or from a file of labels.

    Classes of weight zero cannot occur.
    """
    if path.suffix.lower() != ".json":
        return Prior.of(read_counts(path, table), zeros="keep")
    weights = read_json(
        path,
        msgspec.json.Decoder(list[float] | dict[str, float]),
        "a JSON list of weights, one a class, or an object from class name to weight",
    )
    names = _names(path, table) if isinstance(weights, dict) else None
    if names is None and len(weights) != table.num_classes:
        raise ValueError(
            f"{path} has {len(weights)} weights, but {table.path} has {table.num_classes} classes; "
            "give one weight a class, in the same order"
        )
    try:
        return Prior.of(weights, zeros="keep", classes=names)
    except ValueError as error:
        raise ValueError(f"in {path}: {error}") from error


def _names(path: Path, table: ClassesOf | ScoreTable) -> tuple[str, ...]:
    if table.classes is None:
        raise ValueError(
            f"{path} has its classes by name, but {table.path} does not name its classes; "
            "give a list in their order, or (fix and report) the names with --classes"
        )
    return table.classes
