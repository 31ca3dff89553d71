"""A piece of CIFAR on its way from a file to `ImageArrays`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from longtail.data.images.arrays import ImageArrays


class CifarPart(NamedTuple):
    """Uint8 images of shape (N, 3, 32, 32) and their int64 labels, as a file has them."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]


def join(parts: Sequence[CifarPart], classes: tuple[str, ...], where: str) -> ImageArrays:
    """All parts in their order, or a ValueError if a label is of no class."""
    images = np.concatenate([part.images for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    wrong = (labels < 0) | (labels >= len(classes))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"{where} has the label {labels[at]} at image {at}, expected 0 to {len(classes) - 1}; "
            "it is damaged or of another set: download it again"
        )
    return ImageArrays(torch.from_numpy(images), torch.from_numpy(labels), classes)
