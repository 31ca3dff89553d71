"""All parts of a data set at once."""

import os
from pathlib import Path

from longtail.data.images.arrays import ImageArrays
from longtail.data.images.files import ImageFiles
from longtail.data.images.folders import read_folder_splits
from longtail.data.images.npz import read_npz_splits
from longtail.data.images.splits import ImageSplits


def read_image_splits(
    source: str | os.PathLike[str], allow_empty: bool = False
) -> ImageSplits[ImageFiles] | ImageSplits[ImageArrays]:
    """The training part, and validation and test where they are, with the classes of training.

    Args:
        source: A folder with train, val and test in it, each with a folder a class, or an npz file
            with train_images, train_labels and so on.
        allow_empty: Whether a class folder of the training part may be without images.
    """
    place = Path(source)
    if place.suffix.lower() == ".npz":
        return read_npz_splits(place)
    return read_folder_splits(place, allow_empty)
