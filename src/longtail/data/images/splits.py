"""The parts of a data set, and the long-tailed cut of its training part."""

from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from longtail.data.images.hold_out import hold_out
from longtail.data.images.labelled import LabelledImages
from longtail.data.profiles import exponential_counts, pareto_counts, step_counts
from longtail.data.subsets import long_tailed_subset, ranks_by_count

ImagesT = TypeVar("ImagesT", bound=LabelledImages)
Profile: TypeAlias = Literal["exp", "step", "pareto"]

_PROFILES = {"exp": exponential_counts, "step": step_counts, "pareto": pareto_counts}


@dataclass(frozen=True, eq=False)
class ImageSplits(Generic[ImagesT]):
    """What to train on, what to choose by, and what to report on. All have the same classes.

    Attributes:
        train: The training part.
        validation: Held out for choosing; None if there is no such part.
        test: Nothing may be fitted or chosen on it; None if there is no such part.
    """

    train: ImagesT
    validation: ImagesT | None = None
    test: ImagesT | None = None

    def __post_init__(self) -> None:
        for name, part in (("validation", self.validation), ("test", self.test)):
            if part is not None and part.classes != self.train.classes:
                raise ValueError(
                    f"all parts must have the same classes in the same order, but train has "
                    f"{_shown(self.train.classes)} and {name} has {_shown(part.classes)}; "
                    "give both the same classes"
                )


def hold_out_validation(
    splits: ImageSplits[ImagesT], fraction: float = 0.1, seed: int = 0
) -> ImageSplits[ImagesT]:
    """The same parts with a validation part held out of training; the test part is not touched.

    Nothing changes if there is a validation part already, or if the fraction is 0.

    Args:
        splits: The parts so far.
        fraction: Of each class of the training part, by the rule of `hold_out`.
        seed: Of the choice within the classes.
    """
    kept, held = hold_out(splits.train.labels, fraction, seed)
    if splits.validation is not None or not len(held):
        return splits
    return replace(splits, train=splits.train.subset(kept), validation=splits.train.subset(held))


def long_tailed_images(
    splits: ImageSplits[ImagesT],
    imbalance_ratio: float = 100,
    profile: Profile = "exp",
    seed: int = 0,
    held_out: float = 0.1,
) -> ImageSplits[ImagesT]:
    """A long-tailed cut of the training part, with a validation part held out of the cut.

    The largest class keeps all it has, the others follow the profile in the order of their size,
    equal ones by index; a class that has fewer images than that keeps all. On a balanced set that
    is the published way, and with held_out=0 the published images. Validation and test stay whole.

    Args:
        splits: The parts of the whole set.
        imbalance_ratio: The largest class over the smallest, at least 1.
        profile: "exp" as in CIFAR-LT, "step", or "pareto" as in ImageNet-LT.
        seed: Of the choice of images, for training and for validation.
        held_out: The fraction of the cut for validation, if the set has no such part; 0 for none.
    """
    if profile not in _PROFILES:
        raise ValueError(f'profile must be "exp", "step" or "pareto", got {profile!r}')
    available = splits.train.counts.numpy()
    wanted = _PROFILES[profile](int(available.max()), len(available), imbalance_ratio)
    counts = np.minimum(available, wanted[ranks_by_count(available)])
    kept = long_tailed_subset(splits.train.labels, counts, seed)
    cut = replace(splits, train=splits.train.subset(kept))
    return hold_out_validation(cut, held_out, seed)


def _shown(classes: tuple[str, ...]) -> str:
    first = ", ".join(map(repr, classes[:3])) + (", ..." if len(classes) > 3 else "")
    return f"{len(classes)} ({first})"
