"""split: the lists of SUN397's long-tailed split, from a folder of its images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from longtail import images
from longtail.flows.file_names import LISTS


class PartSize(NamedTuple):
    """How many images a part has: in all, and of its largest and its smallest class."""

    images: int
    largest: int
    smallest: int


@dataclass(frozen=True, eq=False)
class SplitResult:
    """The parts, whose paths start from the root."""

    splits: images.ImageSplits[images.ImageFiles]
    root: Path

    @property
    def parts(self) -> dict[str, images.ImageFiles]:
        """By the name of their list."""
        three = self.splits.train, self.splits.validation, self.splits.test
        return {n: part for n, part in zip(LISTS, three, strict=False) if part is not None}

    @property
    def sizes(self) -> dict[str, PartSize]:
        """Of each list."""
        return {
            name: PartSize(len(part), int(part.counts.max()), int(part.counts.min()))
            for name, part in self.parts.items()
        }

    def as_json(self) -> dict[str, object]:
        """The number of classes, and the sizes of each list."""
        sizes = {name: size._asdict() for name, size in self.sizes.items()}
        return {"classes": self.splits.train.num_classes, "lists": sizes}

    def write(self, folder: Path) -> None:
        """The lists, and the names of the classes in their order."""
        for name, part in self.parts.items():
            images.write_image_list(folder / name, part, self.root)
        names = "".join(f"{name}\n" for name in self.splits.train.classes)
        (folder / LISTS[-1]).write_text(names, encoding="utf-8")


def split(root: str | os.PathLike[str], seed: int = 0) -> SplitResult:
    """SUN397 in the long-tailed split of EO: see `images.sun397_long_tailed`."""
    folder = Path(root)
    return SplitResult(images.sun397_long_tailed(images.read_image_tree(folder), seed), folder)
