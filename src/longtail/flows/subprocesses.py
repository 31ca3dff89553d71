"""Commands as processes of one thread each, so many at a time, and all ended with what waits.

One thread each, however many go at a time, since the last bits of a sum depend on the threads, and
so what is learned would depend on the machine.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Literal, TypeAlias, TypeVar

from longtail.flows.generation import check_free

_Item = TypeVar("_Item")
Process: TypeAlias = subprocess.Popen[bytes]
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
    """Whether somebody writes there now."""
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


def in_turn(
    waiting: list[_Item],
    at_once: int,
    start: Callable[[_Item], Process | Literal["later", "nothing"]],
    over: Callable[[_Item, int], None],
    began: Callable[[_Item], None] = lambda item: None,
) -> None:
    """Start what waits until nothing does; whatever ends this ends what runs.

    Args:
        waiting: Taken from as its turn comes; `over` may add to it.
        at_once: Processes at a time.
        start: The process of one, or whether it has to wait, or is nothing to be done.
        over: Told the exit code of each that has ended.
        began: Told of each that runs.
    """
    running: dict[Process, _Item] = {}
    try:
        while waiting or running:
            for each in list(waiting):
                if len(running) >= at_once:
                    break
                begun = start(each)
                if begun != "later":
                    waiting.remove(each)
                if not isinstance(begun, str):
                    running[begun] = each
                    began(each)
            time.sleep(_PAUSE if waiting or running else 0)
            for process in [each for each in running if each.poll() is not None]:
                over(running.pop(process), process.returncode)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
