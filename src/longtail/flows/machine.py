"""The machine: cores, memory and room for files, as far as this process may use them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")  # where Linux keeps the limits of a container
_SHARED = Path("/dev/shm")  # it is looked at, not written to


@dataclass(frozen=True)
class Folder:
    """A folder: how many bytes are free, and whether this process may write to it."""

    role: str
    path: str
    free: int
    can_write: bool


@dataclass(frozen=True)
class Machine:
    """Cores this process may use, and bytes; None is not known."""

    cores: int
    memory: int | None
    memory_free: int | None
    shared_memory: int | None
    temporary: Folder
    current: Folder


def look_at_machine() -> Machine:
    """Cores, memory and room for files, as far as this process may use them."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = re.fullmatch(r"(\d+) (\d+)\s*", _text(_CGROUP / "cpu.max"))
    limit = max(1, round(int(quota[1]) / int(quota[2]))) if quota else usable
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))  # if none can be written to
    with suppress(FileNotFoundError):
        temporary = Path(tempfile.gettempdir())
    shared = shutil.disk_usage(_SHARED).free if _SHARED.is_dir() else None
    folders = _folder("temporary", temporary), _folder("current", Path.cwd())
    return Machine(min(usable or 1, limit or 1), *_memory(), shared, *folders)


def _memory() -> tuple[int | None, int | None]:
    """All of it and what is free, within the limit of the container if there is one."""
    lines = re.findall(r"(\w+):\s+(\d+) kB", _text(Path("/proc/meminfo")))
    sizes = {name: 1024 * int(size) for name, size in lines}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _text(_CGROUP / "memory.max").strip()
    if limit.isdigit() and (total is None or int(limit) < total):
        used = _text(_CGROUP / "memory.current").strip()
        total = int(limit)
        left = total - int(used) if used.isdigit() else total
        free = left if free is None else min(free, left)
    return total, free


def _folder(role: str, path: Path) -> Folder:
    there = path.is_dir()
    free = shutil.disk_usage(path).free if there else 0
    return Folder(role, str(path), free, there and os.access(path, os.W_OK | os.X_OK))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""
