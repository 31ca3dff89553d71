"""Fetching an official CIFAR archive from its authors' page."""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from longtail.core.files import written_whole
from longtail.data.images.cifar.layout import ARCHIVES, Archive, Name, Version

_BLOCK = 2**20
_MOST = 2**28  # bytes; the archives have about 170 million
_PATIENCE = 60  # seconds without an answer


def download_cifar(name: Name, folder: str | os.PathLike[str], version: Version = "binary") -> Path:
    """The official archive in that folder, fetched if it is not there; it is not unpacked.

    What is fetched is checked by its MD5 and takes its name only when it is whole.

    Args:
        name: "cifar10" or "cifar100".
        folder: Where to put it; made if it is not there.
        version: "binary", or "python" for the pickled one.
    """
    if (name, version) not in ARCHIVES:
        raise ValueError(
            'expected "cifar10" or "cifar100", as "binary" or "python", '
            f"got {name!r} as {version!r}"
        )
    archive = ARCHIVES[name, version]
    place = Path(folder) / archive.file_name
    if place.is_file() and _md5_of(place) == archive.md5:
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(place) as part:
        found = _fetch(archive, part)
        if found != archive.md5:
            raise ValueError(
                f"what came from {archive.url} has the MD5 {found}, expected {archive.md5}; it was "
                "cut short or changed on its way: try again"
            )
    return place


def _fetch(archive: Archive, part: Path) -> str:
    """The MD5 of what was written."""
    digest = hashlib.md5(usedforsecurity=False)
    written = 0
    try:
        with (
            urllib.request.urlopen(archive.url, timeout=_PATIENCE) as answer,
            part.open("wb") as file,
        ):
            while (block := answer.read(_BLOCK)) and written <= _MOST:
                digest.update(block)
                written += file.write(block)
    except urllib.error.URLError as error:
        raise _unreachable(archive, part, error.reason) from error
    except (TimeoutError, ConnectionError) as error:
        raise _unreachable(archive, part, error) from error
    return digest.hexdigest()


def _unreachable(archive: Archive, part: Path, reason: object) -> ConnectionError:
    return ConnectionError(
        f"cannot fetch {archive.url} ({reason}); where there is no network, get the file elsewhere "
        f"and put it into {part.parent} as {archive.file_name}"
    )


def _md5_of(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
