"""The binary version: records of one byte a label and 3072 bytes of pixels."""

import numpy as np
import numpy.typing as npt

from longtail.data.images.cifar.layout import PIXELS, LabelKind, Name
from longtail.data.images.cifar.part import CifarPart

# Where a record has its labels, before its pixels.
LABEL_PLACES: dict[Name, dict[LabelKind, int]] = {
    "cifar10": {"fine": 0},
    "cifar100": {"coarse": 0, "fine": 1},
}


def record_size(name: Name) -> int:
    """The bytes of a record: 3073 or 3074."""
    return len(LABEL_PLACES[name]) + PIXELS


def read_records(data: bytes, name: Name, labels: LabelKind, where: str) -> CifarPart:
    """Images of shape (N, 3, 32, 32) and their labels."""
    size = record_size(name)
    if not data or len(data) % size:
        raise ValueError(
            f"{where} has {len(data):,} bytes, which is no whole number of records of {size}; "
            "it is damaged or of another set: download it again"
        )
    records: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8).reshape(-1, size)
    images = records[:, len(LABEL_PLACES[name]) :].reshape(-1, 3, 32, 32)
    return CifarPart(images, records[:, LABEL_PLACES[name][labels]].astype(np.int64))


def read_names(data: bytes) -> tuple[str, ...]:
    """The class names of a text file, a name a line."""
    return tuple(data.decode("ascii", "replace").split())
