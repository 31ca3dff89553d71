"""How much memory there is to take, asked first: a small file can unpack to more than there is."""

import re
import sys
from pathlib import Path

_PAGE = 4096
_SMALL = 2**24  # bytes that nobody needs to ask for


def check_memory(size: int, what: str) -> None:
    """A ValueError if `what` would take more bytes than are free; an unknown amount is enough."""
    free = None if size < _SMALL else free_memory()
    if free is not None and size > free:
        raise ValueError(
            f"{what} would take {size / 2**30:.3g} GB of memory, of which {free / 2**30:.3g} GB "
            "are free; if the file is meant to be that large, take a machine with more memory, or "
            "a part of the samples"
        )


def free_memory() -> int | None:
    """Bytes that this process may still take: of the machine, its container, its own limit."""
    limits = [*_of_machine(), *_of_container(), *_of_process()]
    return max(0, min(limits)) if limits else None


def _of_machine() -> list[int]:
    available = re.search(r"MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"))
    return [1024 * int(available[1])] if available else []


def _of_container() -> list[int]:
    group = "/sys/fs/cgroup/memory."
    limit, used = _text(f"{group}max").strip(), _text(f"{group}current").strip()
    if not (limit.isdigit() and used.isdigit()):
        return []
    # What is kept of files that were read is given back when it is needed.
    kept = re.search(r"^inactive_file (\d+)$", _text(f"{group}stat"), re.MULTILINE)
    return [int(limit) - int(used) + (int(kept[1]) if kept else 0)]


def _of_process() -> list[int]:
    if sys.platform == "win32":  # it knows no such limit
        return []
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _text("/proc/self/statm").split()
    return [limit - _PAGE * int(used[0])] if limit != resource.RLIM_INFINITY and used else []


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
