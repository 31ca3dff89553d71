"""Threads of our own over parts of rows, each with NumPy's matrix products on one thread.

OpenBLAS, which NumPy's wheels come with, lets its threads spin until all are done. On cores that
others use too, products of blocks that fit the cache take many times as long as on one thread.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from numpy import linalg

_MOST_THREADS = 4  # more wait for memory
_Result = TypeVar("_Result")


def in_threads(work: Callable[[slice], _Result], parts: list[slice]) -> list[_Result]:
    """What the work gives for each part, in order; on threads, unless OMP_NUM_THREADS says one.

    Results do not depend on how many there are. What NumPy was told of errors holds in no other
    thread: the work has to say it.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "")
    threads = min(
        int(setting) if setting.isdigit() else os.cpu_count() or 1, _MOST_THREADS, len(parts)
    )
    with one_blas_thread():
        if threads < 2:
            return [work(part) for part in parts]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, parts))


class _Users:
    """How many ask for one thread now, and how many threads there were before the first."""

    lock = Lock()
    number = 0
    before = 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, NumPy's matrix products take one thread, of the whole process; also a decorator."""
    number = _thread_number()
    if number is None:
        yield
        return
    read, write = number
    with _Users.lock:
        if not _Users.number:
            _Users.before = read()
            write(1)
        _Users.number += 1
    try:
        yield
    finally:
        with _Users.lock:
            _Users.number -= 1
            if not _Users.number:
                write(_Users.before)


@cache
def _thread_number() -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """What reads and what sets how many threads OpenBLAS takes; None where NumPy has another."""
    linked = getattr(getattr(linalg, "_umath_linalg", None), "__file__", None)
    if linked is None:
        return None
    try:
        library = ctypes.CDLL(linked)
    except OSError:
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            get, set_ = (f"{prefix}_{verb}_num_threads{suffix}" for verb in ("get", "set"))
            if hasattr(library, get) and hasattr(library, set_):
                return getattr(library, get), getattr(library, set_)
    return None
