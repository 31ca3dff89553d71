"""Image lists as they are published.

| file | as in | holds |
|---|---|---|
| .txt | ImageNet-LT, Places-LT, iNaturalist 2018 | a path (it may have spaces), a space, a label |
| .txt | SUN397 | only paths; the label is the folder, as ClassName.txt lists them |
| .json | iNaturalist 2018 | images, annotations and categories |
| .csv, .tsv (also .gz) | | a line of column names, among them path and label |

The class index of a .json is the place of the category among all categories in the order of their
ids; in iNaturalist 2018, whose ids run from 0 to 8141, that is the id itself.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch

from longtail.core.files import read_whole, written_whole
from longtail.core.labels import check_num_classes
from longtail.data.tables.errors import check_is_file, reading
from longtail.data.tables.label_codes import are_whole_numbers, classes_of, first_few
from longtail.data.tables.layout import column_place
from longtail.data.tables.names import read_class_names
from longtail.data.tables.text import TextTable, all_lines, suffix_of
from longtail.images.folders import is_image
from longtail.images.labelled import ImageFiles, check_every_class

_PATHS = ("path", "file", "filename", "file_name", "image", "image_path")
_LABELS = ("label", "class", "category", "target")
_MOST_BYTES = 2**30  # of annotations: iNaturalist's of three million images have 2**28
_SPLITS = ("split", "subset", "partition")


class _Row(NamedTuple):
    path: str
    label: str
    line: int  # or row of a table, counted from 1, as editors show them


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
        path: A list as the table of this module says.
        root: The folder that the paths in the list start from.
        num_classes: By default as many as `classes` has names, or up to the largest label.
        classes: Their names, or a file that lists them (.txt or .json); for SUN397 ClassName.txt.
        allow_empty: Whether a class may be without images.
    """
    source, folder = Path(path), Path(root)
    if num_classes is not None and num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
    if isinstance(classes, str | os.PathLike):
        classes = read_class_names(Path(classes))
    names = None if classes is None else tuple(classes)
    match suffix_of(source):
        case ".txt":
            rows = _text_rows(source, has_folder_labels=names is not None)
        case ".csv" | ".tsv":
            rows = _table_rows(source)
        case ".json":
            if names is not None:
                raise ValueError(f"{source} names its classes itself; leave classes out")
            rows, names = _annotated_rows(source)
        case _:
            raise ValueError(
                f"{source} must end in .txt, .json, .csv or .tsv to be read as a list of images; "
                "correct its ending, or convert it"
            )
    if not rows:
        raise ValueError(f"{source} lists no images; give a list that has some")
    labels = _labels_in_order(rows, names, num_classes, source)
    index = {label: at for at, label in enumerate(labels)}
    wrong = next((row for row in rows if row.label not in index), None)
    if wrong is not None:
        raise ValueError(
            f"{source} gives {wrong.path} in line {wrong.line} the label {wrong.label!r}, which is "
            f"none of the {len(labels)} classes, {labels[0]!r} to {labels[-1]!r}; correct the "
            "label, or give the right num_classes or classes"
        )
    # A leading slash, as in SUN397, starts at the root and not at that of the disk.
    paths = tuple(os.path.join(folder, _inside(row, source)) for row in rows)
    indices = torch.tensor([index[row.label] for row in rows])
    images = ImageFiles(paths, indices, names or labels)
    _check_present(images.paths, source)
    if not allow_empty:
        check_every_class(images, str(source))
    return images


def write_image_list(
    path: str | os.PathLike[str], images: ImageFiles, root: str | os.PathLike[str]
) -> None:
    """A .txt list of these images, for `read_image_list` with the same root: path, space, label."""
    names = [Path(os.path.relpath(each, root)).as_posix() for each in images.paths]
    broken = next((name for name in names if name != " ".join(name.splitlines()).strip()), None)
    if broken is not None:
        raise ValueError(f"{broken!r} cannot be a line of a list; rename the file")
    lines = (f"{name} {label}\n" for name, label in zip(names, images.labels.tolist(), strict=True))
    with written_whole(Path(path)) as part:
        part.write_text("".join(lines), encoding="utf-8")


def _text_rows(path: Path, has_folder_labels: bool) -> list[_Row]:
    """The lines of a .txt list; with folder labels a path alone is labelled by its folder."""
    rows = []
    for line, text in enumerate(map(str.strip, all_lines(path)), 1):
        words = text.rsplit(maxsplit=1)
        if len(words) == 2 and not is_image(text):
            rows.append(_Row(words[0], words[1], line))
        elif text and is_image(text) and has_folder_labels:
            rows.append(_Row(text, os.path.dirname(text), line))
        elif text:
            raise ValueError(
                f"{path} has {text[:60]!r} in line {line}, expected a path, a space and a label; "
                "if the folder is the label, as in SUN397, give the list of folders "
                "(ClassName.txt) as classes"
            )
    return rows


def _table_rows(path: Path) -> list[_Row]:
    """The rows of a .csv or .tsv list whose first line names the columns."""
    table = replace(TextTable.open(path), has_header=True)
    names = [name.lower() for name in table.first]
    split = set(names) & set(_SPLITS)
    if split:
        raise ValueError(
            f"{path} has a column {split.pop()!r}, and its parts must not be mixed; "
            "write a list for each part"
        )
    at_path, at_label = (
        column_place(next((n for n in usual if n in names), usual[0]), names, len(names), path)
        for usual in (_PATHS, _LABELS)
    )
    rows = []
    for line, fields in enumerate(table.rows(), 2):
        if len(fields) <= max(at_path, at_label):
            raise ValueError(
                f"{path} has {len(fields)} columns in row {line}, too few; correct that row"
            )
        row = _Row(fields[at_path].strip(), fields[at_label].strip(), line)
        if not (row.path and row.label):
            raise ValueError(f"{path} has no path or no label in row {line}; leave that row out")
        rows.append(row)
    return rows


class _Image(msgspec.Struct):
    id: int
    file_name: str


class _Annotation(msgspec.Struct):
    image_id: int
    category_id: int


class _Category(msgspec.Struct):
    id: int
    name: str = ""


class _Annotations(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation] = []
    categories: list[_Category] = []


def _annotated_rows(path: Path) -> tuple[list[_Row], tuple[str, ...]]:
    """The images of a .json in its order, labelled by the names of their classes; all the names."""
    check_is_file(path)
    with reading(path, "JSON annotations with images, annotations and categories"):
        stored = msgspec.json.decode(read_whole(path, _MOST_BYTES), type=_Annotations)
    ordered = sorted(stored.categories, key=lambda category: category.id)
    names = {category.id: category.name for category in ordered}
    if not names or len(names) != len(ordered):
        raise ValueError(
            f"{path} must list each category once under categories, got {len(ordered)} of "
            f"{len(names)} ids; take the official file"
        )
    if len(set(names.values())) != len(names):
        # They may be missing or shared, by a hybrid and its parent for example; ids are not.
        names = {number: str(number) for number in names}
    category: dict[int, int] = {}
    for note in stored.annotations:
        if category.setdefault(note.image_id, note.category_id) != note.category_id:
            raise ValueError(
                f"{path} gives the image {note.image_id} two categories, {category[note.image_id]} "
                f"and {note.category_id}; here an image has one label: leave one of them out"
            )
    bare = [image for image in stored.images if image.id not in category]
    if bare:
        raise ValueError(
            f"{path} has no annotation for {len(bare)} of its {len(stored.images)} images, first "
            f"{bare[0].file_name}; the files of test images have none: take train or val"
        )
    lost = next((image for image in stored.images if category[image.id] not in names), None)
    if lost is not None:
        raise ValueError(
            f"{path} puts {lost.file_name} in category {category[lost.id]}, which is none of its "
            f"{len(names)} categories; correct the file"
        )
    rows = [
        _Row(image.file_name, names[category[image.id]], at)
        for at, image in enumerate(stored.images, 1)
    ]
    return rows, tuple(names.values())


def _inside(row: _Row, source: Path) -> str:
    """The path from the root on, or a ValueError if it leads out of it."""
    path = row.path.lstrip("/")
    way = os.path.normpath(path)
    leaves = way.split(os.sep)[0] == os.pardir or os.path.isabs(way) or os.path.splitdrive(way)[0]
    if leaves or "\0" in path:
        raise ValueError(
            f"{source} has the path {row.path!r} in line {row.line}, which is none inside the "
            "root; paths start from the root and stay in it: correct the line, or give the folder "
            "above as root"
        )
    return path


def _labels_in_order(
    rows: Sequence[_Row], names: tuple[str, ...] | None, number: int | None, source: Path
) -> tuple[str, ...]:
    """The labels there may be, in the order of the classes."""
    labels = {row.label for row in rows}
    if names is None and not (number and are_whole_numbers(labels)):
        names = classes_of(labels, len(rows), str(source))
    if names is not None and number not in (None, len(names)):
        raise ValueError(
            f"num_classes is {number}, but there are {len(names)} names of classes; give all of "
            "the names, in their order, as classes, and leave num_classes out"
        )
    if names is not None and (labels <= set(names) or not are_whole_numbers(labels)):
        return names
    number = check_num_classes(number or len(names or ()), len(rows), f"labels of {source}")
    return tuple(map(str, range(number)))


def _check_present(paths: Sequence[str], source: Path) -> None:
    # A folder is listed once: half a million questions to a network disk take minutes.
    listed = {folder: _names_in(folder) for folder in {os.path.dirname(path) for path in paths}}
    missing = []
    for path in paths:
        folder, name = os.path.split(path)
        if name not in listed[folder] and not os.path.isfile(path):
            missing.append(path)
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of the {len(paths)} images of {source} are not there: "
            f"{first_few(missing)}; give the folder that the paths start from as root"
        )


def _names_in(folder: str) -> set[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return {entry.name for entry in entries if entry.is_file()}
    except OSError:
        return set()
