"""What is read beside scores and features: counts and priors, in the order of their classes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core import Prior
from longtail.data.label_files import read_label_counts
from longtail.data.score_tables import ScoreTable


class ClassesOf(NamedTuple):
    """A file and its classes, in whose order values are put."""

    path: Path
    num_classes: int
    classes: tuple[str, ...] | None


def read_counts(path: Path, table: ClassesOf | ScoreTable) -> npt.NDArray[np.int64]:
    """Training samples of each class of the table, from a file of counts or of training labels."""
    parts = read_label_counts(path)
    found = next((parts[name] for name in ("train", "all") if name in parts), None)
    if found is None:
        raise ValueError(
            f"{path} has labels of {', '.join(parts)} only; the counts are those of the training "
            "set: give a file of them"
        )
    if found.numbered:
        numbered = {int(label): count for label, count in found.counts.items()}
        if max(numbered) >= table.num_classes:
            raise ValueError(
                f"{path} has a class {max(numbered)}, but {table.path} has {table.num_classes} "
                f"classes, 0 to {table.num_classes - 1}; both must have the same classes"
            )
        if len(numbered) < table.num_classes and _is_list(path):  # labels may lack a class
            raise ValueError(
                f"{path} lists {len(numbered)} counts, but {table.path} has {table.num_classes} "
                "classes; list one a class, in their order, or if one of its columns holds the "
                "labels or something else, say --label-column or --skip"
            )
        return np.array([numbered.get(index, 0) for index in range(table.num_classes)])
    return np.array(
        values_in_order(found.counts, table.classes, path, table.path, 0), dtype=np.int64
    )


def read_prior(path: Path, table: ClassesOf | ScoreTable) -> Prior:
    """A prior from JSON, a list or an object from class name to weight, or from a file of labels.

    Classes of weight zero cannot occur.
    """
    if path.suffix.lower() != ".json":
        return Prior.of(read_counts(path, table), zeros="keep")
    try:
        weights = msgspec.json.decode(path.read_bytes(), type=list[float] | dict[str, float])
    except ValueError as error:  # of JSON, or of the text in it
        raise ValueError(
            f"{path} must be a JSON list of weights, one a class, or an object from class name to "
            f"weight ({error}); correct it"
        ) from error
    ordered = (
        values_in_order(weights, table.classes, path, table.path)
        if isinstance(weights, dict)
        else weights
    )
    if len(ordered) != table.num_classes:
        raise ValueError(
            f"{path} has {len(ordered)} weights, but {table.path} has {table.num_classes} classes; "
            "give one weight a class, in the same order"
        )
    try:
        return Prior.of(ordered, zeros="keep")
    except ValueError as error:
        raise ValueError(f"in {path}: {error}") from error


def _is_list(path: Path) -> bool:
    return path.suffix.lower() == ".json" and path.read_bytes().lstrip().startswith(b"[")


def values_in_order(
    by_name: Mapping[str, float],
    classes: Sequence[str] | None,
    what: object,
    where: object,
    missing: float | None = None,
) -> Sequence[float]:
    """The values of the classes, by their names.

    Args:
        by_name: The values.
        classes: The names in the order wanted.
        what: Where the values are from, for errors.
        where: What has the classes, for errors.
        missing: The value of a class that has none; None to refuse it.
    """
    if classes is None:
        raise ValueError(
            f"{what} has its classes by name, but {where} does not name its classes; "
            "give a list in their order, or (fix and report) the names with --classes"
        )
    unknown = sorted(set(by_name) - set(classes))
    absent = [name for name in classes if name not in by_name]
    if unknown or (absent and missing is None):
        name = f"a class {unknown[0]!r} that" if unknown else f"no class {absent[0]!r}, which"
        has = "does not have" if unknown else "has"
        raise ValueError(f"{what} has {name} {where} {has}; both must have the same classes")
    return [by_name.get(name, missing or 0) for name in classes]
