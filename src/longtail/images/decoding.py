"""Images by Pillow, which comes with the extra `vision`.

As torchvision's loader does: RGB whatever the file has, and no turning by EXIF. Unlike it, images
of more than 8 bits are refused, since Pillow would cut off what is above 255.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

# What Pillow reads by itself: PostScript, of any ending, it would give to Ghostscript to run.
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_DEEP_MODES = ("I", "F")  # and their kinds: I;16, I;16B ...
_FIND_ALL = " (longtail.images.check_images(files, decode=True) finds all such images)"


def pillow() -> Any:
    """The module PIL.Image, or an ImportError that says how to get it."""
    try:
        return import_module("PIL.Image")
    except ImportError as error:
        raise ImportError("image files need Pillow: pip install longtail[vision]") from error


def opened(source: str | os.PathLike[str] | IO[bytes]) -> Any:
    """The Pillow image in a file, of which only the header is read."""
    return pillow().open(source, formats=_FORMATS)


def decode_file(path: str | os.PathLike[str]) -> Tensor:
    """The image in a file as RGB, uint8 of shape (3, H, W), or an error that names the file."""
    with naming_the_image(str(path), _FIND_ALL), opened(path) as image:
        return as_rgb(image)


def as_rgb(image: Any) -> Tensor:
    """A Pillow image as uint8 of shape (3, H, W)."""
    _check_depth(image)
    pixels = np.array(image.convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def verify_file(path: str | os.PathLike[str]) -> None:
    """The error that reading would give, as far as the header and checksums tell."""
    with naming_the_image(str(path), _FIND_ALL), opened(path) as image:
        _check_depth(image)
        image.verify()


def _check_depth(image: Any) -> None:
    if image.mode.split(";")[0] in _DEEP_MODES:
        raise ValueError(f"it has more than 8 bits a channel (mode {image.mode}): scale it to 8")


@contextmanager
def naming_the_image(name: str, hint: str = "") -> Iterator[None]:
    """Whatever Pillow says of a damaged image becomes a ValueError that says which one."""
    # Of a damaged file Pillow raises whatever its decoder of that format stumbled over.
    damage = (OSError, ValueError, SyntaxError, TypeError, LookupError, EOFError, struct.error)
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no image {name}; was it moved or deleted?") from error
    except PermissionError:
        raise
    except (*damage, pillow().DecompressionBombError) as error:
        raise ValueError(
            f"the image {name} cannot be read ({error or type(error).__name__}); "
            f"replace it or leave it out{hint}"
        ) from error
