"""Reading and writing files whole or not at all, and folders that one process writes to.

A folder is locked by its file `.longtail/lock`, which also says who holds it; the lock ends with
that process, however it ends. Where the system or the file system knows no such locks (Windows;
some network drives) none is taken.
"""

import glob
import os
import re
import secrets
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_HIDDEN, _LOCK = ".longtail", "lock"  # what longtail keeps in a folder for itself
_TRIES = 100  # each is lost only to somebody who removed the folder at that moment
_held: dict[tuple[str, int], int] = {}  # descriptors by folder and thread
_PART = re.compile(r"\.[0-9a-f]{8}\.part")
_MOST_BYTES = 2**26  # of a file that is read in one go, unless the reader says otherwise


def read_whole(path: str | os.PathLike[str], most: int = _MOST_BYTES) -> bytes:
    """All of a file; a ValueError if it is a pipe or a device, or has more bytes than `most`."""

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # for the writer of a pipe

    with open(path, "rb", opener=without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{os.fspath(path)} is no plain file")
        if status.st_size <= most:
            return file.read(status.st_size)
    raise ValueError(
        f"{os.fspath(path)} has more than the {most:,} bytes that such a file may have"
    )


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to; it takes the place of `path` if nothing went wrong.

    What processes that were killed left of the same file is removed.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {target.parent} to write {target.name} in; make it first"
        )
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file in it")
    _remove_orphans(target)
    part, descriptor = _new_part(target)
    try:
        yield part
        part.replace(target)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error  # as of a full disk
    finally:
        part.unlink(missing_ok=True)
        os.close(descriptor)


def _new_part(target: Path) -> tuple[Path, int]:
    """A new empty file, as open() makes it, and the lock that tells it from an orphan."""
    while True:
        part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
        # Exclusive: what somebody put there, a link to another file among it, is not followed.
        try:
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            continue
        if _try_lock(descriptor) is not False and _is_same_file(descriptor, part):
            return part, descriptor
        os.close(descriptor)  # between the two lines it was taken for an orphan
        part.unlink(missing_ok=True)


def _remove_orphans(target: Path) -> None:
    """Files of writers that are gone: nobody locks them any more."""
    names = glob.glob(f"{glob.escape(target.name)}.*.part", root_dir=target.parent)
    for name in [each for each in names if _PART.fullmatch(each.removeprefix(target.name))]:
        with suppress(OSError):  # somebody else's, or gone already
            orphan = target.with_name(name)
            descriptor = os.open(orphan, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _try_lock(descriptor):
                    orphan.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make the folder if it is not there, and be the only one who writes to it.

    BlockingIOError if another process, or another thread, is. The thread that holds the lock may
    take it again. What was made for it alone is removed after.
    """
    root = Path(folder)
    key = os.path.realpath(root), threading.get_ident()
    if key in _held:
        yield root
        return
    absent = [path for path in (root, *root.parents) if not path.exists()]
    _held[key] = descriptor = _taken(root)
    try:
        yield root
    finally:
        hidden = root / _HIDDEN
        with suppress(OSError):
            if os.listdir(hidden) == [_LOCK]:
                (hidden / _LOCK).unlink()
                hidden.rmdir()
        for path in absent:
            with suppress(OSError):  # it holds something now
                path.rmdir()
        del _held[key]
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool | None:
    """Lock an open file: whether nobody else has, and None where there are no locks."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one at this path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    return False


def _taken(folder: Path) -> int:
    path = folder / _HIDDEN / _LOCK
    for _ in range(_TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.parent.mkdir()
            descriptor = _opened(path)
        except FileNotFoundError:  # its last holder removed the folder just now
            continue
        if _try_lock(descriptor) is False:
            holder = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            raise BlockingIOError(
                f"another longtail{f' (process {holder})' if holder.isdigit() else ''} is writing "
                f"to {folder}; wait until it has ended, or take another folder"
            )
        if _is_same_file(descriptor, path):
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)  # its last holder removed the file between opening and locking
    raise FileNotFoundError(f"the folder {folder} cannot be made there; take another folder")


def _opened(path: Path) -> int:
    """The file to lock, made if it is not there; its text is ours to change, and no other's."""
    if not stat.S_ISDIR(os.lstat(path.parent).st_mode):
        raise ValueError(
            f"{path.parent} is where longtail keeps track of what it writes, and is no folder; "
            "remove it"
        )
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o666)
    opened = os.fstat(descriptor)
    if stat.S_ISREG(opened.st_mode) and opened.st_nlink <= 1:  # none: it was removed just now
        return descriptor
    os.close(descriptor)
    raise ValueError(
        f"{path} is not a file that longtail made: it is another file too, or no file; remove it"
    )


def _forget() -> None:
    """A forked process holds no lock: it may live on when its parent was killed."""
    for descriptor in _held.values():
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
