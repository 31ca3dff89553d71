"""Writing files whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longtail.core.write_errors import naming_the_file


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it takes the place of `path` if nothing went wrong."""
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place.parent} to write {place.name} in; make it first"
        )
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    try:
        with naming_the_file(place):
            yield part
            part.replace(place)
    finally:
        part.unlink(missing_ok=True)
