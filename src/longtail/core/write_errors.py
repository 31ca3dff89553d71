"""What goes wrong when a file is written, said with its name: a full disk does not say it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming_the_file(path: Path) -> Iterator[None]:
    """An error of the system while this file is written becomes an OSError with its name."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    except Exception as error:
        # The number of the error is all that safetensors, which is written in Rust, keeps of it.
        number = re.search(r"\(os error (\d+)\)", str(error))
        if type(error).__name__ != "SafetensorError" or number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
