"""Whether the files and the classes of a list are there, said in one sentence."""

import os
from collections import defaultdict
from collections.abc import Sequence

from longtail.data.images.labelled import LabelledImages

_SHOWN = 3


def check_present(paths: Sequence[str], where: str) -> None:
    """A FileNotFoundError that says how many files are missing, and the first few."""
    missing = _missing(paths)
    if missing:
        first = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise FileNotFoundError(
            f"{len(missing)} of the {len(paths)} images of {where} are not there: {first}; "
            "give the folder that the paths start from as root"
        )


def check_every_class(images: LabelledImages, where: str) -> None:
    """A ValueError that says how many classes have no image, and the first few."""
    empty = [images.classes[at] for at in (images.counts == 0).nonzero().flatten().tolist()]
    if empty:
        first = ", ".join(map(repr, empty[:_SHOWN])) + (", ..." if len(empty) > _SHOWN else "")
        raise ValueError(
            f"{len(empty)} of the {images.num_classes} classes of {where} have no image: {first}; "
            "add images, or leave such classes out (in Python, allow_empty=True keeps them)"
        )


def _missing(paths: Sequence[str]) -> list[str]:
    # A folder is listed once: half a million questions to a network disk take minutes.
    by_folder: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_folder[os.path.dirname(path)].append(path)
    there: set[str] = set()
    for folder, wanted in by_folder.items():
        found = _names_in(folder)
        there.update(
            path for path in wanted if os.path.basename(path) in found or os.path.isfile(path)
        )
    return [path for path in paths if path not in there]


def _names_in(folder: str) -> set[str]:
    try:
        with os.scandir(folder or ".") as entries:
            return {entry.name for entry in entries if entry.is_file()}
    except OSError:
        return set()
