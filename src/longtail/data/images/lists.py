"""Image lists as they are published.

| file | as in | holds |
|---|---|---|
| .txt | ImageNet-LT, Places-LT, iNaturalist 2018 | a path (it may have spaces), a space, a label |
| .txt | SUN397 | only paths; the label is the folder, as ClassName.txt lists them |
| .json | iNaturalist 2018 | images, annotations and categories |
| .csv, .tsv (also .gz) | | a line of column names, among them path and label |
"""

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from longtail.core.labels import check_num_classes
from longtail.data.files.class_names import read_class_names
from longtail.data.files.label_codes import are_whole_numbers
from longtail.data.files.text import suffix_of
from longtail.data.images.files import ImageFiles
from longtail.data.images.inaturalist import read_annotations
from longtail.data.images.list_rows import ImageRow, table_rows, text_rows
from longtail.data.images.present import check_every_class, check_present


def read_image_list(
    path: str | os.PathLike[str],
    root: str | os.PathLike[str],
    num_classes: int | None = None,
    classes: Sequence[str] | str | os.PathLike[str] | None = None,
    allow_empty: bool = False,
) -> ImageFiles:
    """The images of a list, all of which must be there.

    Labels that are whole numbers are class indices; others are names, in the order of `classes`, or
    of the alphabet.

    Args:
        path: The list: .txt, .json, .csv or .tsv, as the table of this module says.
        root: The folder that the paths in the list start from.
        num_classes: How many classes there are; by default as many as `classes` has names, or up to
            the largest label.
        classes: The names of the classes, or a file that lists them (.txt or .json); for SUN397
            its ClassName.txt.
        allow_empty: Whether a class may be without images.
    """
    place, folder = Path(path), Path(root)
    if num_classes is not None and num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
    names = _names(classes)
    match suffix_of(place):
        case ".txt":
            rows = text_rows(place, has_folder_labels=names is not None)
        case ".csv" | ".tsv":
            rows = table_rows(place)
        case ".json":
            if names is not None:
                raise ValueError(f"{place} names its classes itself; leave classes out")
            rows, names = read_annotations(place)
        case _:
            raise ValueError(
                f"{place} must end in .txt, .json, .csv or .tsv to be read as a list of images; "
                "correct its ending, or convert it"
            )
    if not rows:
        raise ValueError(f"{place} lists no images; give a list that has some")
    known = _known_labels(rows, names, num_classes, place)
    # A leading slash, as in SUN397, starts at the root and not at that of the disk.
    paths = tuple(os.path.join(folder, _inside(row, place)) for row in rows)
    images = ImageFiles(paths, torch.tensor(_indices(rows, known, place)), names or known)
    check_present(images.paths, str(place))
    if not allow_empty:
        check_every_class(images, str(place))
    return images


def _inside(row: ImageRow, place: Path) -> str:
    """The path from the root on, or a ValueError if it leads out of it."""
    path = row.path.lstrip("/")
    way = os.path.normpath(path)
    leaves = way.split(os.sep)[0] == os.pardir or os.path.isabs(way) or os.path.splitdrive(way)[0]
    if leaves or "\0" in path:
        raise ValueError(
            f"{place} has the path {row.path!r} in line {row.line}, which is none inside the root; "
            "paths start from the root and stay in it: mend the line, or give the folder above as "
            "root"
        )
    return path


def _known_labels(
    rows: Sequence[ImageRow], names: tuple[str, ...] | None, number: int | None, place: Path
) -> tuple[str, ...]:
    """The labels there may be, in the order of the classes."""
    if names is not None and number not in (None, len(names)):
        raise ValueError(
            f"num_classes is {number}, but there are {len(names)} names of classes; leave one of "
            "them out, or make them agree"
        )
    found = {row.label for row in rows}
    if names is not None and found <= set(names):
        return names
    if are_whole_numbers(found):
        up_to_largest = max(*map(int, found), 0) + 1
        number = number or (len(names) if names is not None else up_to_largest)
        check_num_classes(number, len(rows), f"labels of {place}")
        return tuple(map(str, range(number)))
    if number not in (None, len(names or found)):
        raise ValueError(
            f"{place} has {len(found)} names for labels, but num_classes is {number}; give all "
            "of the names, in their order, as classes"
        )
    return names or tuple(sorted(found))


def _indices(rows: Sequence[ImageRow], known: tuple[str, ...], place: Path) -> list[int]:
    index = {label: at for at, label in enumerate(known)}
    wrong = next((row for row in rows if row.label not in index), None)
    if wrong is not None:
        raise ValueError(
            f"{place} gives {wrong.path} in line {wrong.line} the label {wrong.label!r}, which is "
            f"none of the {len(known)} classes, {known[0]!r} to {known[-1]!r}; mend the label, or "
            "give the right num_classes or classes"
        )
    return [index[row.label] for row in rows]


def _names(
    classes: Sequence[str] | str | os.PathLike[str] | None,
) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if isinstance(classes, str | os.PathLike):
        return read_class_names(Path(classes))
    return tuple(classes)
