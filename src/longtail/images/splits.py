r"""The parts of a data set, a validation part taken from training, and long-tailed cuts.

Of a class with n ≥ 2 samples validation gets min(n − 1, max(1, ⌊n · fraction + ½⌋)), of one with a
single sample none: every class can be trained, and all but those of a single sample can be judged.

SUN397's long-tailed split (Wang et al., NeurIPS 2017) takes half of each class to train on, a tenth
for validation and 40 images for the test, and throws 49 and 9 of the first two away: ⌈n/2⌉ − 49 and
⌊n/10⌋ − 9 are left, from 1 for a class of 100 images to 1,132 for one of 2,361 (EO §4.1).
"""

from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from longtail.core.arrays import Array, ArrayLike
from longtail.core.labels import check_num_classes
from longtail.core.tensors import as_kind_of, as_tensor, label_tensor
from longtail.data.profiles import exponential_counts, pareto_counts, step_counts
from longtail.data.subsets import long_tailed_subset, ranks_by_count
from longtail.data.tables.label_codes import first_few
from longtail.images.labelled import LabelledImages

ImagesT = TypeVar("ImagesT", bound=LabelledImages)
Profile: TypeAlias = Literal["exp", "step", "pareto"]

_PROFILES = {"exp": exponential_counts, "step": step_counts, "pareto": pareto_counts}


@dataclass(frozen=True, eq=False)
class ImageSplits(Generic[ImagesT]):
    """What to train on, what to choose by, and what to report on. All have the same classes."""

    train: ImagesT
    validation: ImagesT | None = None
    test: ImagesT | None = None

    def __post_init__(self) -> None:
        for name, part in (("validation", self.validation), ("test", self.test)):
            if part is not None and part.classes != self.train.classes:
                raise ValueError(
                    f"all parts must have the same classes in the same order, but train has "
                    f"{_listed(self.train.classes)} and {name} has {_listed(part.classes)}; "
                    "give both the same classes"
                )


def split_validation(
    labels: ArrayLike, fraction: float = 0.1, seed: int = 0
) -> tuple[Array, Array]:
    """Positions of the samples to train on and of those for validation, both in ascending order.

    The fraction is of each class; 0 takes nothing.

    >>> train, validation = split_validation([0] * 10 + [1] * 2 + [2], fraction=0.2)
    >>> len(train), validation.tolist()
    (10, [3, 4, 11])
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"fraction must lie in 0 to 1, 1 excluded, got {fraction}")
    tensor = as_tensor(labels)
    number = int(tensor.max()) + 1 if tensor.numel() else 1
    indices = label_tensor(tensor, check_num_classes(number, len(tensor))).cpu()
    counts = torch.bincount(indices)
    sizes = torch.minimum(
        (counts - 1).clamp(min=0),
        (counts.double() * fraction + 0.5).floor().long().clamp(min=1 if fraction else 0),
    )
    by_class, ranks = _shuffled_classes(indices, seed)
    is_validation = ranks < sizes[indices[by_class]]
    train, validation = (
        by_class[each].sort().values.to(tensor.device) for each in (~is_validation, is_validation)
    )
    return as_kind_of(train, labels), as_kind_of(validation, labels)


def with_validation(
    splits: ImageSplits[ImagesT], fraction: float = 0.1, seed: int = 0
) -> ImageSplits[ImagesT]:
    """The same parts with a validation part taken from training, as `split_validation` does.

    Nothing changes if there is a validation part already, or if the fraction is 0.
    """
    train, validation = split_validation(splits.train.labels, fraction, seed)
    if splits.validation is not None or not len(validation):
        return splits
    whole = splits.train
    return replace(splits, train=whole.subset(train), validation=whole.subset(validation))


def long_tailed_images(
    splits: ImageSplits[ImagesT],
    imbalance_ratio: float = 100,
    profile: Profile = "exp",
    seed: int = 0,
    validation_share: float = 0.1,
) -> ImageSplits[ImagesT]:
    """A long-tailed cut of the training part, with a validation part held out of the cut.

    The largest class keeps all it has, the others follow the profile ("exp" as in CIFAR-LT, "step",
    or "pareto" as in ImageNet-LT) in the order of their size, equal ones by index; a class that has
    fewer images than that keeps all. On a balanced set that is the published way, and without a
    validation share, which is cut off if the set has no such part, the published images. Validation
    and test stay whole.
    """
    if profile not in _PROFILES:
        raise ValueError(f'profile must be "exp", "step" or "pareto", got {profile!r}')
    available = splits.train.counts.numpy()
    wanted = _PROFILES[profile](int(available.max()), len(available), imbalance_ratio)
    counts = np.minimum(available, wanted[ranks_by_count(available)])
    kept = long_tailed_subset(splits.train.labels, counts, seed)
    cut = replace(splits, train=splits.train.subset(kept))
    return with_validation(cut, validation_share, seed)


def sun397_long_tailed(images: ImagesT, seed: int = 0) -> ImageSplits[ImagesT]:
    """SUN397, or a set like it, in the long-tailed split that EO reports on: see the module.

    Every class needs 100 images. The published split has no lists; this one is as large, and the
    seed decides which images are in it.
    """
    counts = images.counts
    if int(counts.min()) < 100:
        at = int(counts.argmin())
        raise ValueError(
            "the split of SUN397 needs at least 100 images of each class, but "
            f"{images.classes[at]!r} has {int(counts[at])}; take the complete set"
        )
    by_class, ranks = _shuffled_classes(images.labels, seed)
    sizes = counts[images.labels[by_class]]
    half, tenth = (sizes + 1) // 2, sizes // 10
    parts = ((0, half - 49), (half, half + tenth - 9), (half + tenth, half + tenth + 40))
    train, validation, test = (
        images.subset(by_class[(ranks >= start) & (ranks < end)].sort().values)
        for start, end in parts
    )
    return ImageSplits(train, validation, test)


def _shuffled_classes(labels: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Positions class by class, shuffled within each, and which of its class each then is."""
    generator = torch.Generator("cpu").manual_seed(seed)
    shuffled = torch.randperm(len(labels), generator=generator, device="cpu")
    # Stable, so that each class keeps the shuffled order, and its first samples are a random part.
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    counts = torch.bincount(labels)
    return by_class, torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[by_class]]


def _listed(classes: tuple[str, ...]) -> str:
    return f"{len(classes)} ({first_few(map(repr, classes))})"
