"""Images on disk, decoded one by one when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.data.images.decoding import decode_file
from longtail.data.images.labelled import LabelledImages, check_positions


@dataclass(frozen=True, eq=False)
class ImageFiles(LabelledImages):
    """Paths of images and their labels; a map-style dataset. Reading an image needs Pillow.

    Nothing is read when it is made. `read_image_folder` and `read_image_list` make it from what
    people have and see that the files are there; `check_images` finds those that are damaged.

    Attributes:
        paths: The file of each image.
        labels: The class of each image, int64, shape (N,).
        classes: The name of each class; by default 0, 1, ... up to the largest label.

    >>> files = ImageFiles(("a/1.jpg", "b/1.jpg", "a/2.jpg"), [0, 1, 0], ("a", "b"))
    >>> len(files), files.subset([1]).paths, files.subset([1]).counts.tolist()
    (3, ('b/1.jpg',), [0, 1])
    """

    paths: tuple[str, ...]
    labels: Tensor
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._settle_labels()
        object.__setattr__(self, "paths", tuple(map(str, self.paths)))
        if len(self.paths) != len(self.labels):
            raise ValueError(
                f"there must be a label for each of {len(self.paths)} paths, got {len(self.labels)}"
            )

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """The image in RGB as uint8 of shape (3, H, W), and its label."""
        return decode_file(self.paths[index]), int(self.labels[index])

    def subset(self, positions: ArrayLike) -> ImageFiles:
        """The images at these positions, in this order, with the same classes."""
        at = check_positions(positions, len(self))
        paths = tuple(self.paths[index] for index in at.tolist())
        return replace(self, paths=paths, labels=self.labels[at])
