"""The files of one run of a command: written aside, and put in place together.

They are written to a new folder in OUT/.longtail. When all are on the disk, that folder is renamed
to OUT/.longtail/placing: from this moment they count. Then the files of the run before are removed,
the new ones move to OUT, and generation.json, which names them, last. A run that is killed before
that moment leaves the old files as they were; one that is killed after it leaves old files or new
ones, never both, and `placing`, by which the next one who looks finishes what it began.

Files of others in OUT stay, and a command that would write over one is refused.

A folder may come from a stranger, and by generation.json files are removed. So it is read only if
it is a plain file, and believed only as a whole: every key is there, and every name is that of a
file in the folder itself.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from longtail.flows.file_names import PAGE, RECIPE, VERSIONS

HIDDEN = ".longtail"  # as core.files has it
_MANIFEST = "generation.json"
_MOST_BYTES = 2**20
_LONGEST = 255  # characters of a name, on all file systems
_PLACING, _WRITING = "placing", "writing-"
_HEAD = 4096  # bytes of a page in which its title is


class Generation(NamedTuple):
    """What a folder holds."""

    kind: str  # of what kind the files are, such as "fix"
    files: tuple[str, ...]  # their names
    replaces: tuple[str, ...] = ()  # files of older runs whose place they took


def generation_in(folder: Path) -> Generation | None:
    """What a command has put in the folder; None if none did, or one that did not say so."""
    train = Generation("train", (RECIPE,)) if is_run(folder) else None
    return _read_manifest(folder / HIDDEN / _MANIFEST) or train


def is_run(folder: Path) -> bool:
    """Whether `longtail train` began a run there: its VERSIONS come before all else it writes."""
    if not (folder / VERSIONS).is_file():
        return False
    from longtail.core.files import read_whole

    try:
        values = json.loads(read_whole(folder / VERSIONS, _MOST_BYTES).decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and {"longtail", "torch", "threads"} <= values.keys()


def added(folder: Path, kind: str) -> AbstractContextManager[Path]:
    """A folder to write files to that join those of their kind in the folder.

    Of what `generation` gave to write to, it is that itself.
    """
    if folder.parent.name == HIDDEN:
        return nullcontext(folder)
    return generation(folder, kind, (PAGE,), keep=True)


@contextmanager
def generation(
    folder: Path, kind: str, names: Sequence[str] = (), *, keep: bool = False
) -> Iterator[Path]:
    """A folder to write files to; they take the place of those that were there before.

    Args:
        folder: Where they go; made if it is not there. A BlockingIOError if a process writes there.
        kind: What they are; a folder with files of another kind is refused.
        names: Files that older runs may have left without saying so.
        keep: Whether files that were there before stay, but for those that are written again.
    """
    from longtail.core.files import locked

    with locked(folder):
        _finish(folder)
        check_kind(folder, kind)
        hidden = folder / HIDDEN
        for orphan in hidden.glob(f"{_WRITING}*"):
            shutil.rmtree(orphan, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix=_WRITING, dir=hidden))
        try:
            with _named_as_placed(folder, aside):
                yield aside
            before = _read_manifest(hidden / _MANIFEST) if keep else None
            for name in before.files if before else ():
                if not (aside / name).exists() and _is_plain_file(folder / name):
                    _link(folder / name, aside / name)
            files = sorted(os.listdir(aside))
            _check_places(folder, files)
            check_not_others(folder, files)
            left = names if _is_of_older_longtail(folder) else ()
            manifest = Generation(kind, tuple(files), tuple(sorted(left)))._asdict()
            (aside / _MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
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
def _named_as_placed(folder: Path, aside: Path) -> Iterator[None]:
    """An error of the system names the file as it will be called, where its reader looks for it."""
    try:
        yield
    except OSError as error:
        name = Path(str(error.filename))
        if error.filename is None or name.parent != aside:
            raise
        raise OSError(error.errno, error.strerror, str(folder / name.name)) from error


def check_kind(folder: Path, kind: str) -> None:
    """A ValueError if the folder holds what another command has written."""
    current = generation_in(folder)
    if current is not None and current.kind != kind:
        raise ValueError(
            f"{folder} holds the files of longtail {current.kind}, which would be lost; take "
            "another folder, or remove this one"
        )


def check_free(folder: Path) -> None:
    """A BlockingIOError if another process writes there now."""
    if (folder / HIDDEN).is_dir():
        from longtail.core.files import locked

        with locked(folder):
            pass


def check_not_others(folder: Path, files: Iterable[str]) -> None:
    """A ValueError if one of the files is there and no longtail has written it."""
    current = generation_in(folder)
    # Of a run that is trained some are written before it is done.
    if current.kind == "train" if current else _is_of_older_longtail(folder):
        return
    ours = current.files if current else ()
    for name in files:
        if name not in ours and os.path.lexists(folder / name):
            raise ValueError(
                f"{folder / name} is there and was not written by longtail, which would write over "
                "it; take another folder, or move that file"
            )


def settle(folder: Path) -> bool:
    """Finish what a killed run began; whether the folder holds one generation, and whole."""
    if not os.path.lexists(folder / HIDDEN / _PLACING):
        return True
    from longtail.core.files import locked

    try:
        with locked(folder):
            _finish(folder)
    except OSError:  # another process is at it, or we may not write here
        return False
    return True


def _finish(folder: Path) -> None:
    """Put in place what is to be; it may be called again however far it came.

    All that could be wrong with what is found is looked for before the first file is removed.
    """
    hidden, placing = folder / HIDDEN, folder / HIDDEN / _PLACING
    if not os.path.lexists(placing):
        return
    if not stat.S_ISDIR(os.lstat(placing).st_mode):
        raise ValueError(
            f"{placing} is where longtail keeps files that are to be put in place, and is no "
            "folder; remove it"
        )
    new = _read_manifest(placing / _MANIFEST)
    if new is None:  # it was moved last: there is nothing else
        if os.listdir(placing):
            raise ValueError(
                f"{placing} holds files and no list of them, so nobody knows what they are; move "
                "them elsewhere, or remove it"
            )
        shutil.rmtree(placing)
        return
    before = _read_manifest(hidden / _MANIFEST)
    waiting = [name for name in new.files if os.path.lexists(placing / name)]
    for name in waiting:
        if not _is_plain_file(placing / name):
            raise ValueError(f"{placing / name} is no file that longtail wrote; remove {placing}")
    _check_places(folder, new.files)
    if len(waiting) == len(new.files):  # else all that was there is gone already
        gone = {*new.files, *new.replaces, *(before.files if before else ())}
        _check_places(folder, gone)
        for name in gone:
            (folder / name).unlink(missing_ok=True)
    for name in waiting:
        (placing / name).replace(folder / name)
    (placing / _MANIFEST).replace(hidden / _MANIFEST)
    shutil.rmtree(placing)


def _is_of_older_longtail(folder: Path) -> bool:
    """Whether a folder is of a longtail that did not yet name what it wrote: its page says so."""
    page = folder / PAGE
    if generation_in(folder) is not None or not _is_plain_file(page):
        return False
    with page.open("rb") as file:
        return b"<title>longtail" in file.read(_HEAD)


def _check_places(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise IsADirectoryError(
                f"{folder / name} is a folder, and a file of that name is to be written; move it, "
                "or take another output folder"
            )


def _link(path: Path, other: Path) -> None:
    """The same file under another name too, or a copy where there are no such links."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)


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


def _read_manifest(path: Path) -> Generation | None:
    """What the file says, None if there is none; a ValueError that names it if it is damaged."""
    if not os.path.lexists(path):
        return None
    from longtail.core.files import read_whole

    try:
        if not _is_plain_file(path):
            raise ValueError("no plain file")
        values = json.loads(read_whole(path, _MOST_BYTES).decode("utf-8"))
        kind, files, replaces = (values[name] for name in Generation._fields)
        if not isinstance(files, list) or not isinstance(replaces, list):
            raise TypeError("no list")
        return Generation(_name(kind), tuple(map(_name, files)), tuple(map(_name, replaces)))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        hidden = next(parent for parent in path.parents if parent.name == HIDDEN)
        raise ValueError(
            f"{path} is damaged; remove {hidden}, and what is in {hidden.parent} counts as yours"
        ) from None


def _is_plain_file(path: Path) -> bool:
    """Whether it is a file, and no link, pipe or device."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _name(name: object) -> str:
    """A name of a file and no path: what is removed lies in the folder, whatever a file says."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
        raise TypeError("no name")
    if name in (".", "..") or name.casefold() == HIDDEN or any(c in name for c in "/\\\0"):
        raise ValueError("a name with a folder in it")
    name.encode("utf-8")  # not every str is the name of a file
    return name
