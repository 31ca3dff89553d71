r"""The parts of a data set, a validation part held out of training, and long-tailed cuts.

Of a class with n ≥ 2 samples validation gets min(n − 1, max(1, ⌊n · fraction + ½⌋)), of one with a
single sample none: every class can be trained, and all but those of a single sample can be judged.
"""

from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np
import torch

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


def hold_out(labels: ArrayLike, fraction: float = 0.1, seed: int = 0) -> tuple[Array, Array]:
    """Positions of the samples to train on and of those for validation, both in ascending order.

    The fraction is of each class; 0 holds nothing out.

    >>> train, validation = hold_out([0] * 10 + [1] * 2 + [2], fraction=0.2)
    >>> len(train), validation.tolist()
    (10, [3, 4, 11])
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"fraction must lie in 0 to 1, 1 excluded, got {fraction}")
    tensor = as_tensor(labels)
    number = int(tensor.max()) + 1 if tensor.numel() else 1
    indices = label_tensor(tensor, check_num_classes(number, len(tensor))).cpu()
    generator = torch.Generator("cpu").manual_seed(seed)
    shuffled = torch.randperm(len(indices), generator=generator, device="cpu")
    # Stable, so that each class keeps the shuffled order, and its first samples are a random part.
    by_class = shuffled[indices[shuffled].argsort(stable=True)]
    counts = torch.bincount(indices)
    sizes = torch.minimum(
        (counts - 1).clamp(min=0),
        (counts.double() * fraction + 0.5).floor().long().clamp(min=1 if fraction else 0),
    )
    ranks = torch.arange(len(indices)) - (torch.cumsum(counts, 0) - counts)[indices[by_class]]
    is_validation = ranks < sizes[indices[by_class]]
    train, validation = (
        by_class[each].sort().values.to(tensor.device) for each in (~is_validation, is_validation)
    )
    return as_kind_of(train, labels), as_kind_of(validation, labels)


def hold_out_validation(
    splits: ImageSplits[ImagesT], fraction: float = 0.1, seed: int = 0
) -> ImageSplits[ImagesT]:
    """The same parts with a validation part held out of training, by the rule of `hold_out`.

    Nothing changes if there is a validation part already, or if the fraction is 0.
    """
    train, validation = hold_out(splits.train.labels, fraction, seed)
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
    return hold_out_validation(cut, validation_share, seed)


def _listed(classes: tuple[str, ...]) -> str:
    return f"{len(classes)} ({first_few(map(repr, classes))})"
