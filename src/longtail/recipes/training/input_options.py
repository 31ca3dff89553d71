"""What happens to images before the network sees them, and how they are drawn."""

from typing import Annotated, TypeAlias

import msgspec

from longtail.recipes.training.section import (
    Above,
    Named,
    Pixels,
    Positive,
    Section,
    Share,
    ShareBelowOne,
    Whole,
)


class Crop(Named, frozen=True, tag="crop"):
    """A crop of the padded image, as large as the image was."""

    padding: Whole = 4


class Flip(Named, frozen=True, tag="flip"):
    """Left and right turned round."""

    probability: Share = 0.5


class ColorJitter(Named, frozen=True, tag="color_jitter"):
    """Brightness, contrast and colour times a factor within 1 ± each."""

    brightness: Share = 0.4
    contrast: Share = 0.4
    color: Share = 0.4


class AutoAugment(Named, frozen=True, tag="autoaugment"):
    """The policy for CIFAR."""


class Cutout(Named, frozen=True, tag="cutout"):
    """A square hidden."""

    size: Pixels = 16


Augmentation: TypeAlias = Crop | Flip | ColorJitter | AutoAugment | Cutout


class Normalization(Section, frozen=True):
    """Mean and standard deviation of each channel, for values in 0 to 1."""

    mean: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    std: Annotated[tuple[Above, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")


CIFAR = Normalization(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
IMAGENET = Normalization(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
INATURALIST = Normalization(mean=(0.466, 0.471, 0.380), std=(0.195, 0.194, 0.192))


class Instance(Named, frozen=True, tag="instance"):
    """Every image once an epoch."""


class ClassBalanced(Named, frozen=True, tag="class_balanced"):
    """Every class alike."""


class SquareRoot(Named, frozen=True, tag="square_root"):
    """By the root of the count."""


class Reversed(Named, frozen=True, tag="reversed"):
    """By one over the count."""


class EffectiveNumber(Named, frozen=True, tag="effective_number"):
    """By class-balanced weights."""

    beta: ShareBelowOne = 0.9999


class Progressive(Named, frozen=True, tag="progressive"):
    """From instance to class-balanced over the epochs."""


class MPerClass(Named, frozen=True, tag="m_per_class"):
    """Every class alike, m images of it in a row."""

    m: Positive


Sampler: TypeAlias = (
    Instance | ClassBalanced | SquareRoot | Reversed | EffectiveNumber | Progressive | MPerClass
)
