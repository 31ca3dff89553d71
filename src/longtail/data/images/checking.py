"""Finding damaged images before a training run finds them."""

from dataclasses import dataclass

from longtail.data.images.decoding import decode_file, verify_file
from longtail.data.images.files import ImageFiles


@dataclass(frozen=True)
class BrokenImage:
    """An image that cannot be read.

    Attributes:
        position: Where it stands in the set.
        path: Its file.
        reason: What reading it says.
    """

    position: int
    path: str
    reason: str


def check_images(files: ImageFiles, decode: bool = False) -> tuple[BrokenImage, ...]:
    """The images that are missing or damaged.

    Args:
        files: The images to look at.
        decode: Whether to read every pixel. By default only headers are read and, where the format
            has them (PNG), checksums; that finds empty files and files of another kind, but not
            the half of a JPEG.

    >>> check_images(ImageFiles(("nowhere.png",), [0]))[0].reason
    'there is no image nowhere.png; was it moved or deleted?'
    """
    look = decode_file if decode else verify_file
    found = []
    for position, path in enumerate(files.paths):
        try:
            look(path)
        except (ValueError, OSError) as error:
            found.append(BrokenImage(position, path, str(error)))
    return tuple(found)
