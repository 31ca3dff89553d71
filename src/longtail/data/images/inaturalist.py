"""Annotations as iNaturalist publishes them: a JSON file of images, annotations and categories.

The class index is the place of the category among all categories in the order of their ids; in
iNaturalist 2018, whose ids run from 0 to 8141, that is the id itself.
"""

from pathlib import Path

import msgspec

from longtail.data.files.errors import check_is_file, reading
from longtail.data.images.list_rows import ImageRow


class _Image(msgspec.Struct):
    id: int
    file_name: str


class _Annotation(msgspec.Struct):
    image_id: int
    category_id: int


class _Category(msgspec.Struct):
    id: int
    name: str = ""


class _File(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation] = []
    categories: list[_Category] = []


def read_annotations(path: Path) -> tuple[list[ImageRow], tuple[str, ...]]:
    """The images in the order of the file, labelled by the names of their classes; all the names.

    A line of these rows is the place of the image among the images, from 1.
    """
    check_is_file(path)
    with reading(path, "JSON annotations with images, annotations and categories"):
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    names = _names(file, path)
    category: dict[int, int] = {}
    for note in file.annotations:
        if category.setdefault(note.image_id, note.category_id) != note.category_id:
            raise ValueError(
                f"{path} gives the image {note.image_id} two categories, {category[note.image_id]} "
                f"and {note.category_id}; here an image has one label: leave one of them out"
            )
    bare = [image for image in file.images if image.id not in category]
    if bare:
        raise ValueError(
            f"{path} has no annotation for {len(bare)} of its {len(file.images)} images, first "
            f"{bare[0].file_name}; the files of test images have none: take train or val"
        )
    rows = []
    for at, image in enumerate(file.images, 1):
        label = category[image.id]
        if label not in names:
            raise ValueError(
                f"{path} puts {image.file_name} in category {label}, which is none of its "
                f"{len(names)} categories; mend the file"
            )
        rows.append(ImageRow(image.file_name, names[label], at))
    return rows, tuple(names.values())


def _names(file: _File, path: Path) -> dict[int, str]:
    """From the id of a category to its name, in the order of the ids."""
    ids = sorted(category.id for category in file.categories)
    found = {category.id: category.name for category in file.categories}
    if not ids or len(found) != len(ids):
        raise ValueError(
            f"{path} must list each category once under categories, got {len(ids)} of "
            f"{len(found)} ids; take the official file"
        )
    # The names may be missing or shared, by a hybrid and its parent for example; ids are not.
    names = {at: found[at] for at in ids}
    return names if len(set(names.values())) == len(ids) else {at: str(at) for at in ids}
