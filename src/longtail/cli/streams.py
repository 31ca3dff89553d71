"""Standard streams that the caller has closed (`longtail ... >&-`): what is printed goes nowhere.

Their numbers are taken too. Else the next file that is opened would get one of them, and whatever a
library prints would stand in that file.
"""

import os
import sys
from typing import TextIO


def open_closed_streams() -> None:
    """Open each of the three that is closed on the null device."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
