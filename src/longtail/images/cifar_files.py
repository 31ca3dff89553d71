"""The official CIFAR archives: what they are, fetching them, and the bytes of their files.

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Nothing is unpacked: the
files of an archive are read from its stream by their exact names and no larger than they may be,
so no path in it can lead anywhere.
"""

import gzip
import hashlib
import os
import tarfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from longtail.core.files import written_whole
from longtail.data.tables.errors import check_is_file, reading

Name: TypeAlias = Literal["cifar10", "cifar100"]
Version: TypeAlias = Literal["binary", "python"]
LabelKind: TypeAlias = Literal["fine", "coarse"]

_SITE = "https://www.cs.toronto.edu/~kriz"
_BLOCK = 2**20
_MOST = 2**28  # bytes of an archive, of a file in it, or after the last one that is read
DAMAGED = "it is damaged or of another set: download it again"
_PATIENCE = 60  # seconds without an answer


@dataclass(frozen=True)
class Archive:
    """One version of one set: "binary", or "python" for pickled dictionaries.

    Its MD5 is published with it, so that it tells damage and not malice.
    """

    name: Name
    version: Version
    md5: str
    folder: str

    @property
    def file_name(self) -> str:
        """What the archive is called."""
        return f"cifar-{self.name.removeprefix('cifar')}-{self.version}.tar.gz"

    @property
    def images(self) -> list[str]:
        """The files of images in the folder: those of training, and the one of test images."""
        batches = [f"data_batch_{number}" for number in range(1, 6)]
        stems = [*batches, "test_batch"] if self.name == "cifar10" else ["train", "test"]
        return [f"{stem}.bin" if self.version == "binary" else stem for stem in stems]

    def names(self, labels: LabelKind) -> str:
        """The file of class names."""
        if self.version == "binary":
            return "batches.meta.txt" if self.name == "cifar10" else f"{labels}_label_names.txt"
        return "batches.meta" if self.name == "cifar10" else "meta"


_ALL = (
    Archive("cifar10", "binary", "c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin"),
    Archive("cifar100", "binary", "03b5dce01913d631647c71ecec9e9cb8", "cifar-100-binary"),
    Archive("cifar10", "python", "c58f30108f718f92721af3b95e74349a", "cifar-10-batches-py"),
    Archive("cifar100", "python", "eb9058c3a382ffc7106e4002c42a8d85", "cifar-100-python"),
)
ARCHIVES = {(archive.name, archive.version): archive for archive in _ALL}


def download_cifar(name: Name, folder: str | os.PathLike[str], version: Version = "binary") -> Path:
    """The official archive in that folder, fetched if it is not there; it is not unpacked.

    What is fetched is checked by its MD5 and takes its name only when it is whole.
    """
    if (name, version) not in ARCHIVES:
        wanted = " or ".join(f'("{each}", "{form}")' for each, form in ARCHIVES)
        raise ValueError(f"name and version must be {wanted}, got {name!r} as {version!r}")
    archive = ARCHIVES[name, version]
    path = Path(folder) / archive.file_name
    if path.is_file() and _md5_of(path) == archive.md5:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    url = f"{_SITE}/{archive.file_name}"
    with written_whole(path) as part:
        _fetch(url, part)
        md5 = _md5_of(part)
        if md5 != archive.md5:
            raise ValueError(
                f"what came from {url} has the MD5 {md5}, expected {archive.md5}; it was cut short "
                "or changed on its way: try again"
            )
    return path


def read_files(source: Path, folder: str, names: Sequence[str]) -> dict[str, bytes]:
    """What is in each file of a folder, or of that folder in a .tar.gz archive."""
    if source.is_dir():
        files = {name: source / name for name in names}
        for path in files.values():
            check_is_file(path)
            _check_size(path.stat().st_size, str(path))
        return {name: path.read_bytes() for name, path in files.items()}
    check_is_file(source)
    members = {f"{folder}/{name}": name for name in names}
    contents: dict[str, bytes] = {}
    with reading(source, "a .tar.gz archive"), gzip.open(source) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    wanted = members.get(member.name.removeprefix("./"))
                    if wanted is not None and wanted not in contents and member.isreg():
                        _check_size(member.size, f"{member.name} in {source}")
                        file = archive.extractfile(member)
                        contents[wanted] = b"" if file is None else file.read()
                        if len(contents[wanted]) != member.size:
                            raise EOFError(f"{member.name} is cut short")
                    if len(contents) == len(names):
                        break
        except tarfile.TarError as error:
            raise ValueError(str(error)) from error
        # The checksum stands at the end, and is looked at when the end is reached.
        if all(stream.read(_BLOCK) for _ in range(_MOST // _BLOCK)):
            raise ValueError(f"{_MOST:,} bytes follow what it should hold")
    missing = [member for member, name in members.items() if name not in contents]
    if missing:
        raise ValueError(f"{source} has no file {missing[0]}; {DAMAGED}")
    return contents


def _check_size(size: int, name: str) -> None:
    if size > _MOST:
        raise ValueError(f"{name} has {size:,} bytes, more than the {_MOST:,} it may; {DAMAGED}")


def _fetch(url: str, part: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer, part.open("wb") as file:
            while (block := answer.read(_BLOCK)) and file.tell() <= _MOST:
                file.write(block)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ConnectionError(
            f"cannot fetch {url} ({reason}); where there is no network, get the file elsewhere and "
            f"put it into {part.parent} as {url.rsplit('/', 1)[1]}"
        ) from error


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
