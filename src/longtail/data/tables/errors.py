"""What goes wrong when a file is read, said in one sentence that names the file."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

# What readers stumble over in bytes that were changed; RuntimeError is what zipfile raises for
# passwords and unknown compressions.
_DAMAGE = (
    *(ValueError, EOFError, OSError, RuntimeError, AttributeError, LookupError, OverflowError),
    *(SyntaxError, TypeError, struct.error, zlib.error, lzma.LZMAError),
    *(zipfile.BadZipFile, SafetensorError),
)


class MissingError(ValueError):
    """A file has no column or array of the name that was asked for."""

    def __init__(self, name: object, sentence: str) -> None:
        super().__init__(name, sentence)
        self.name = name

    def __str__(self) -> str:
        return str(self.args[1])


class ObjectsError(ValueError):
    """A file is as it should be, but holds Python objects, which are not unpickled."""


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Whatever a library says while it reads becomes a ValueError; "an npz file" is a `what`."""
    try:
        yield
    except (PermissionError, ObjectsError):
        raise
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        # NumPy's advice for what it does not know, which is never followed here.
        if "allow_pickle" in reason:
            reason = "it does not begin as such a file does"
        raise ValueError(
            f"{path} cannot be read as {what} ({reason}); "
            "it is damaged, cut short or of another format: make it again, or correct its ending"
        ) from error


@contextmanager
def naming(where: str) -> Iterator[None]:
    """What is wrong with values is said with the array or file that they are from."""
    try:
        yield
    except ObjectsError:
        raise  # it says so itself
    except ValueError as error:
        raise ValueError(f"in {where}: {error}") from error


def check_is_file(path: Path) -> None:
    """Raise unless there is a file with something in it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, expected a file; give a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the name and the folder")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty (0 bytes); make it again")
