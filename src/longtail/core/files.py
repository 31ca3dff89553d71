"""Writing files whole or not at all."""

import glob
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longtail.core.locks import is_same_file, try_lock
from longtail.core.write_errors import naming_the_file

_PART = re.compile(r"\.[0-9a-f]{8}\.part")


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it takes the place of `path` if nothing went wrong.

    What processes that were killed left of the same file is removed.
    """
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place.parent} to write {place.name} in; make it first"
        )
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder; give the name of a file in it")
    _remove_orphans(place)
    part, descriptor = _new_part(place)
    try:
        with naming_the_file(place):
            yield part
            part.replace(place)
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


def _new_part(place: Path) -> tuple[Path, int]:
    """A new empty file, as open() makes it, and the lock that tells it from an orphan."""
    while True:
        part = place.with_name(f"{place.name}.{secrets.token_hex(4)}.part")
        # Exclusive: what somebody put there, a link to another file among it, is not followed.
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        if try_lock(descriptor) is not False and is_same_file(descriptor, part):
            return part, descriptor
        os.close(descriptor)  # between the two lines it was taken for an orphan
        part.unlink(missing_ok=True)


def _remove_orphans(place: Path) -> None:
    """Files of writers that are gone: nobody locks them any more."""
    for name in glob.glob(f"{glob.escape(place.name)}.*.part", root_dir=place.parent):
        if not _PART.fullmatch(name.removeprefix(place.name)):
            continue
        with suppress(OSError):  # somebody else's, or gone already
            orphan = place.with_name(name)
            descriptor = os.open(orphan, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if try_lock(descriptor):
                    orphan.unlink()
            finally:
                os.close(descriptor)
