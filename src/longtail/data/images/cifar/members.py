"""Some files of an archive or of a folder, by their exact names and no larger than they may be.

Nothing is unpacked: the members of an archive are read from its stream, so no path in it can lead
anywhere.
"""

import gzip
import tarfile
from collections.abc import Mapping
from pathlib import Path

from longtail.data.files.errors import check_is_file, reading

_BLOCK = 2**20
_MOST_REST = 2**28  # bytes after the last file that is read


def read_members(source: Path, folder: str, limits: Mapping[str, int]) -> dict[str, bytes]:
    """What is in each file, or an error that says which one is missing or too large.

    Args:
        source: A .tar.gz archive, or the folder that the files are in.
        folder: The folder that the files are in within the archive.
        limits: For each file the bytes that it may have at the most.
    """
    if source.is_dir():
        return {name: _read_file(source / name, most) for name, most in limits.items()}
    found = _read_archive(source, {f"{folder}/{name}": most for name, most in limits.items()})
    missing = [name for name in limits if f"{folder}/{name}" not in found]
    if missing:
        raise ValueError(
            f"{source} has no file {folder}/{missing[0]}; it is another archive or cut short: "
            "download it again"
        )
    return {name: found[f"{folder}/{name}"] for name in limits}


def _read_file(place: Path, most: int) -> bytes:
    check_is_file(place)
    _check_size(place.stat().st_size, most, str(place))
    return place.read_bytes()


def _read_archive(source: Path, limits: Mapping[str, int]) -> dict[str, bytes]:
    check_is_file(source)
    with reading(source, "a .tar.gz archive"), gzip.open(source) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                found = _read_stream(archive, limits, str(source))
        except tarfile.TarError as error:
            raise ValueError(str(error)) from error
        # The checksum stands at the end, and is looked at when the end is reached.
        for _ in range(_MOST_REST // _BLOCK):
            if not stream.read(_BLOCK):
                return found
        raise ValueError(f"{_MOST_REST:,} bytes follow what it should hold")


def _read_stream(
    archive: tarfile.TarFile, limits: Mapping[str, int], where: str
) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for member in archive:
        name = member.name.removeprefix("./")
        if name in limits and name not in found and member.isreg():
            _check_size(member.size, limits[name], f"{name} in {where}")
            file = archive.extractfile(member)
            found[name] = b"" if file is None else file.read()
            if len(found[name]) != member.size:
                raise EOFError(f"{name} is cut short")
        if len(found) == len(limits):
            break
    return found


def _check_size(size: int, most: int, name: str) -> None:
    if size > most:
        raise ValueError(
            f"{name} has {size:,} bytes, more than the {most:,} there can be; "
            "it is not the official file: download it again"
        )
