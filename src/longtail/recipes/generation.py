"""The files of one run of a command: written aside, and put in place together.

They are written to a new folder in OUT/.longtail. When all are on the disk, that folder is renamed
to OUT/.longtail/placing: from this moment they count. Then the files of the run before are removed,
the new ones move to OUT, and generation.json, which names them, last. A run that is killed before
that moment leaves the old files as they were; one that is killed after it leaves old files or new
ones, never both, and `placing`, by which the next one who looks finishes what it began.

Files of others in OUT stay. Torch is not imported before a folder is locked.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_HIDDEN = ".longtail"  # as core.locks has it
_MANIFEST, _PLACING, _WRITING = "generation.json", "placing", "writing-"
_PAGE = "report.html"  # every command writes it
_TRAIN = "recipe.yaml"  # a run that is being trained has this before it has results


class Generation(NamedTuple):
    """What a folder holds: files, and of what kind they are, such as "fix"."""

    kind: str
    files: tuple[str, ...]


def held_in(folder: Path) -> Generation | None:
    """What a command has put in the folder; None if none did, or one that did not say so."""
    found = _read(folder / _HIDDEN / _MANIFEST)
    if found is None and (folder / _TRAIN).is_file():
        return Generation("train", (_TRAIN,))
    return found


@contextmanager
def generation(folder: Path, kind: str, names: Sequence[str] = ()) -> Iterator[Path]:
    """A folder to write files to; they take the place of those that were there before.

    Args:
        folder: Where they go; made if it is not there.
        kind: What they are; a folder with files of another kind is refused.
        names: Files that older runs may have left without saying so.

    Raises:
        BlockingIOError: Somebody else is writing there.
    """
    from longtail.core.locks import locked

    with locked(folder):
        _finish(folder)
        check_kind(folder, kind)
        hidden = folder / _HIDDEN
        for orphan in hidden.glob(f"{_WRITING}*"):
            shutil.rmtree(orphan, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=_WRITING, dir=hidden))
        try:
            with _said_of(folder, aside):
                yield aside
            _check_places(folder, os.listdir(aside))
            _write_manifest(aside, kind, _unsaid(folder, names))
            _sync(aside)
            aside.rename(hidden / _PLACING)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        try:
            _finish(folder)
        except KeyboardInterrupt:  # it has begun, and takes no time
            _finish(folder)
            raise


@contextmanager
def _said_of(folder: Path, aside: Path) -> Iterator[None]:
    """An error of the system names the file by the place where its reader would look for it."""
    try:
        yield
    except OSError as error:
        name = Path(str(error.filename))
        if error.filename is None or name.parent != aside:
            raise
        raise OSError(error.errno, error.strerror, str(folder / name.name)) from error


def check_kind(folder: Path, kind: str) -> None:
    """A ValueError if the folder holds what another command has written."""
    held = held_in(folder)
    if held is not None and held.kind != kind:
        raise ValueError(
            f"{folder} holds the files of longtail {held.kind}, which would be lost; take another "
            "folder, or remove this one"
        )


def settle(folder: Path) -> bool:
    """Finish what a killed run began; whether the folder holds one generation, and whole."""
    if not (folder / _HIDDEN / _PLACING).is_dir():
        return True
    from longtail.core.locks import locked

    try:
        with locked(folder):
            _finish(folder)
    except OSError:  # somebody is at it, or we may not write here
        return False
    return True


def _finish(folder: Path) -> None:
    """Put in place what is to be; it may be called again however far it came."""
    hidden = folder / _HIDDEN
    placing = hidden / _PLACING
    if not placing.is_dir():
        return
    new = _read(placing / _MANIFEST)
    if new is not None:
        before = _read(hidden / _MANIFEST)
        waiting = [name for name in new.files if os.path.lexists(placing / name)]
        if len(waiting) == len(new.files):  # else all that was there is gone already
            old = [] if before is None else before.files
            for name in {*new.files, *_left_over(placing), *old}:
                (folder / name).unlink(missing_ok=True)
        for name in waiting:
            (placing / name).replace(folder / name)
        (placing / _MANIFEST).replace(hidden / _MANIFEST)
    shutil.rmtree(placing)


def _unsaid(folder: Path, names: Sequence[str]) -> Sequence[str]:
    """What to remove of a folder whose files nobody named: none if no command wrote them."""
    ours = held_in(folder) is None and (folder / _PAGE).is_file()
    return names if ours else ()


def _write_manifest(aside: Path, kind: str, names: Sequence[str]) -> None:
    said = {"kind": kind, "files": sorted(os.listdir(aside)), "replaces": sorted(names)}
    (aside / _MANIFEST).write_text(json.dumps(said) + "\n", encoding="utf-8")


def _read(place: Path) -> Generation | None:
    try:
        said = json.loads(place.read_text(encoding="utf-8"))
        return Generation(str(said["kind"]), _names(said["files"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{place} is damaged; remove {place.parent}, and what is in {place.parent.parent} "
            "counts as yours"
        ) from None


def _left_over(placing: Path) -> tuple[str, ...]:
    return _names(json.loads((placing / _MANIFEST).read_text(encoding="utf-8"))["replaces"])


def _names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of files and no paths: what is removed lies in the folder, whatever a file says."""
    if any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise ValueError("a name with a folder in it")
    return tuple(names)


def _check_places(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise IsADirectoryError(
                f"{folder / name} is a folder, and a file of that name is to be written; move it, "
                "or take another output folder"
            )


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # not every file system can
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
