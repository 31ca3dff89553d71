"""Stopping between two steps, and not within one: what Ctrl-C and SIGTERM then find is whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """Somebody asked to stop, by a signal."""

    def __init__(self, number: int, where: str) -> None:
        super().__init__(f"stopped by signal {number}, {where}")
        self.signal = number


class Interruption:
    """Whether somebody asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.process = os.getpid()

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember a first signal; a second one interrupts at once."""
        if os.getpid() != self.process:
            # A worker that reads images: Ctrl-C is not its business, to be ended is.
            if number == signal.SIGTERM:
                os._exit(128 + number)
            return
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def interruption(catch: bool) -> Iterator[Interruption]:
    """Signals are noted instead of interrupting; only in the main thread, where Python has them."""
    asked = Interruption()
    if not catch or threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.note) for number in _SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
