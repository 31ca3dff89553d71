"""Commands as processes of one thread each, so many at a time, and all ended with what waits.

One thread each, however many go at a time, since the last bits of a sum depend on the threads, and
so what is learned would depend on the machine.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

from longtail.flows.generation import check_free

_Item = TypeVar("_Item")
Process: TypeAlias = subprocess.Popen[bytes]
TAKEN = 75  # the exit code of one that finds its folder taken: try later, as in sysexits
_PAUSE = 0.1  # seconds between two looks at what runs
_PATIENCE = 60.0  # seconds that a process is given for a last step and its checkpoint
_ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "OMP_WAIT_POLICY": "PASSIVE",
}


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_taken(folder: Path) -> bool:
    """Whether a process writes there now."""
    try:
        check_free(folder)
    except BlockingIOError:
        return True
    return False


def started(command: Sequence[str], errors: IO[bytes]) -> Process:
    """A process, with what it has to say in a file: a pipe could fill."""
    return subprocess.Popen(
        command,
        env=os.environ | _ONE_THREAD,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,  # Ctrl-C is passed on once: a second one would cost a checkpoint
    )


@contextmanager
def ended_together(running: Collection[Process]) -> Iterator[None]:
    """Those that run when the block is left are ended."""
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def over(running: dict[Process, _Item]) -> list[tuple[_Item, int]]:
    """After a moment, what has ended since, with its exit code; it runs no more."""
    time.sleep(_PAUSE)
    done = [process for process in running if process.poll() is not None]
    return [(running.pop(process), process.returncode) for process in done]
