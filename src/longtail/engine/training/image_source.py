"""Batches of images, from where they are stored to what the model sees in training.

They are picked from tensors in memory, or read from files by worker processes. The channels of a
pixel end up side by side in memory, which convolutions of any library are faster with; the weights
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset

from longtail.engine.backbones.backbone import channels_last
from longtail.engine.training.fixed_size import FixedSize
from longtail.images import ImageArrays, LabelledImages
from longtail.images.augment import Augmentation, Mixup, Normalize

Source: TypeAlias = "InMemory | FromFiles"


class Batch(NamedTuple):
    """Images as they are stored, uint8 (N, C, H, W), and their labels."""

    images: Tensor
    labels: Tensor


class InMemory:
    """Images that stay on the device as one tensor: a batch is an index away."""

    def __init__(self, images: ImageArrays, device: torch.device) -> None:
        self.images, self.labels = images.images.to(device), images.labels.to(device)

    def batches(
        self, positions: Sequence[int], size: int, seed: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """The images at these positions, `size` at a time."""
        order = torch.tensor(positions, dtype=torch.long).to(self.images.device)
        for first in range(0, len(order), size):
            at = order[first : first + size]
            yield Batch(self.images.index_select(0, at), self.labels[at])


@dataclass(frozen=True)
class FromFiles:
    """Images that are read when their turn comes."""

    images: LabelledImages
    device: torch.device
    num_workers: int

    def batches(
        self, positions: Sequence[int], size: int, seed: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """The images at these positions, `size` at a time.

        What is random in reading them follows from the seed and the place, counted from `start`.
        """
        drawn = torch.randint(
            2**62, (start + len(positions),), generator=Generator().manual_seed(seed)
        )
        keyed = list(zip(positions, drawn[start:].tolist(), strict=True))
        on_gpu = self.device.type == "cuda"
        loader = DataLoader(
            _Keyed(self.images),
            batch_sampler=[keyed[i : i + size] for i in range(0, len(keyed), size)],
            num_workers=self.num_workers,
            collate_fn=_collated,
            pin_memory=on_gpu,
            # Or it would draw a seed from torch's generator, once more if a run is started again.
            generator=Generator().manual_seed(0),
        )
        for read in loader:
            if isinstance(read, Exception):
                raise read
            yield Batch(
                read.images.to(self.device, non_blocking=on_gpu),
                read.labels.to(self.device, non_blocking=on_gpu),
            )


def image_source(images: LabelledImages, device: torch.device, num_workers: int = 0) -> Source:
    """Where the batches come from."""
    if isinstance(images, ImageArrays):
        return InMemory(images, device)
    return FromFiles(images, device, num_workers)


class _Keyed(Dataset["tuple[Tensor, int] | Exception"]):
    """Images by position and seed.

    An image that cannot be read is handed on as the error: raised in a worker process, it would
    reach the reader as the traceback of that process.
    """

    def __init__(self, images: LabelledImages) -> None:
        self.images = images

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, int] | Exception:
        position, seed = key
        try:
            if isinstance(self.images, FixedSize):
                return self.images.drawn(position, Generator().manual_seed(seed))
            return self.images[position]
        except (ValueError, OSError) as error:
            return error


def _collated(samples: list[tuple[Tensor, int] | Exception]) -> Batch | Exception:
    read = [sample for sample in samples if not isinstance(sample, Exception)]
    if len(read) < len(samples):
        return next(sample for sample in samples if isinstance(sample, Exception))
    images, labels = zip(*read, strict=True)
    shapes = {tuple(image.shape) for image in images}
    if len(shapes) > 1:
        return ValueError(
            f"the images of a batch must be of one size, got {sorted(shapes)[:3]}; make them so: "
            "FixedSize(images, size=224), in a recipe data.size=224"
        )
    return Batch(torch.stack(images), torch.tensor(labels))


class Inputs:
    """Augments, normalises and mixes batches."""

    def __init__(
        self,
        augment: Augmentation | None,
        normalize: Normalize,
        mixup: float | None,
        num_classes: int,
        generator: Generator,
    ) -> None:
        self.augment, self.normalize, self.num_classes = augment, normalize, num_classes
        self.mixup = None if mixup is None else Mixup(mixup)
        self.generator = generator

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The images, and their labels: class indices, or probabilities after mixup."""
        images, labels = batch
        if self.augment is not None:
            images = self.augment(images, self.generator)
        images = self.normalize(images)
        if self.mixup is not None:
            images, labels = self.mixup(images, labels, self.num_classes, self.generator)
        return channels_last(images), labels
