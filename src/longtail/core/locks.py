"""A folder that one process writes to: a lock that ends with that process, however it ends.

The lock is on the file `.longtail/lock` of the folder, which also says who holds it. Where the
system or the file system knows no such locks (Windows; some network drives) none is taken.
"""

import os
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

HIDDEN = ".longtail"  # what longtail keeps in a folder for itself
_LOCK = "lock"
_TRIES = 100  # each is lost only to somebody who removed the folder at that moment
_held: dict[tuple[str, int], int] = {}  # descriptors by folder and thread


@contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make the folder if it is not there, and be the only one who writes to it.

    The thread that holds the lock may take it again. What was made for it alone is removed after.

    Raises:
        BlockingIOError: Another process, or another thread, holds it.
    """
    place = Path(folder)
    key = os.path.realpath(place), threading.get_ident()
    if key in _held:
        yield place
        return
    absent = [path for path in (place, *place.parents) if not path.exists()]
    _held[key] = descriptor = _taken(place)
    try:
        yield place
    finally:
        hidden = place / HIDDEN
        with suppress(OSError):
            if os.listdir(hidden) == [_LOCK]:
                (hidden / _LOCK).unlink()
                hidden.rmdir()
        for path in absent:
            with suppress(OSError):  # it holds something now
                path.rmdir()
        del _held[key]
        os.close(descriptor)


def try_lock(descriptor: int) -> bool | None:
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


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _taken(folder: Path) -> int:
    path = folder / HIDDEN / _LOCK
    for _ in range(_TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _make_hidden(path.parent)
            descriptor = _opened(path)
        except FileNotFoundError:  # its last holder removed the folder just now
            continue
        if try_lock(descriptor) is False:
            holder = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            raise BlockingIOError(
                f"another longtail{f' (process {holder})' if holder.isdigit() else ''} is writing "
                f"to {folder}; wait until it has ended, or take another folder"
            )
        if is_same_file(descriptor, path):
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)  # its last holder removed the file between opening and locking
    raise FileNotFoundError(f"the folder {folder} cannot be made there; take another folder")


def _opened(path: Path) -> int:
    """The file to lock, made if it is not there; its text is ours to change, and no other's."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o666)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:  # none: it was removed just now
        return descriptor
    os.close(descriptor)
    raise ValueError(
        f"{path} is not a file that longtail made: it is another file too, or no file; remove it"
    )


def _make_hidden(path: Path) -> None:
    with suppress(FileExistsError):
        path.mkdir()
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise ValueError(
            f"{path} is where longtail keeps track of what it writes, and is no folder; remove it"
        )


def _forget() -> None:
    """A forked process holds no lock: it may live on when its parent was killed."""
    for descriptor in _held.values():
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
