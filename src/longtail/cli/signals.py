"""SIGTERM and SIGHUP as an exception, so that what a command has begun to write is removed."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Terminated(KeyboardInterrupt):
    """Somebody ended the process."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by signal {number}")
        self.signal = number


def raise_on_signals() -> None:
    """From now on these signals raise Terminated in the main thread; nohup keeps its meaning."""
    process = os.getpid()

    def end(number: int, frame: FrameType | None) -> NoReturn:
        if os.getpid() != process:  # a worker that inherited this
            os._exit(128 + number)
        raise Terminated(number)

    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
