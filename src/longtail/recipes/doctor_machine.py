"""The machine: cores, memory and room for files, as far as this process may use them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")  # where Linux keeps the limits of a container
_SHARED = Path("/dev/shm")  # it is looked at, not written to


@dataclass(frozen=True)
class Place:
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
    temporary: Place
    current: Place


def look_at_machine() -> Machine:
    """Ask the system."""
    memory, free = _memory()
    return Machine(
        cores=_cores(),
        memory=memory,
        memory_free=free,
        shared_memory=shutil.disk_usage(_SHARED).free if _SHARED.is_dir() else None,
        temporary=_place("temporary", _temporary()),
        current=_place("current", Path.cwd()),
    )


def _cores() -> int:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = re.fullmatch(r"(\d+) (\d+)\s*", _text(_GROUP / "cpu.max"))
    limit = max(1, round(int(quota[1]) / int(quota[2]))) if quota else None
    return min(usable or 1, limit or usable or 1)


def _memory() -> tuple[int | None, int | None]:
    """All of it and what is free, within the limit of the container if there is one."""
    known = {
        name: 1024 * int(size)
        for name, size in re.findall(r"(\w+):\s+(\d+) kB", _text(Path("/proc/meminfo")))
    }
    total, free = known.get("MemTotal"), known.get("MemAvailable")
    if total is None and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _text(_GROUP / "memory.max").strip()
    if limit.isdigit() and (total is None or int(limit) < total):
        used = _text(_GROUP / "memory.current").strip()
        total = int(limit)
        left = total - int(used) if used.isdigit() else total
        free = left if free is None else min(free, left)
    return total, free


def _temporary() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the usual ones can be written to
        return Path(os.environ.get("TMPDIR", "/tmp"))


def _place(role: str, path: Path) -> Place:
    there = path.is_dir()
    return Place(
        role=role,
        path=str(path),
        free=shutil.disk_usage(path).free if there else 0,
        can_write=there and os.access(path, os.W_OK | os.X_OK),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
