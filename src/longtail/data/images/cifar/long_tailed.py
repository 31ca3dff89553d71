"""CIFAR-LT in one call."""

import os

from longtail.data.images.arrays import ImageArrays
from longtail.data.images.cifar.layout import LabelKind, Name
from longtail.data.images.cifar.reading import read_cifar
from longtail.data.images.splits import ImageSplits, Profile, long_tailed_images


def cifar_long_tailed(
    source: str | os.PathLike[str],
    name: Name = "cifar100",
    imbalance_ratio: float = 100,
    profile: Profile = "exp",
    seed: int = 0,
    held_out: float = 0.1,
    labels: LabelKind = "fine",
    official: bool = True,
) -> ImageSplits[ImageArrays]:
    """CIFAR-10-LT, CIFAR-100-LT or, with coarse labels, CIFAR-20-LT; the test part is whole.

    With seed 0 the training and the validation part together are the images of the widely used
    published builder: 12,406 of CIFAR-10 and 10,847 of CIFAR-100 at ratio 100. To train on all
    of them, as published figures do, say held_out=0; then nothing is left to choose by but the
    test part, which is what those figures often did.

    Args:
        source: An archive, folder or npz file that `read_cifar` reads.
        name: "cifar10" or "cifar100".
        imbalance_ratio: The largest class over the smallest: 10, 50, 100 and 200 are usual.
        profile: "exp" or "step"; also "pareto".
        seed: Of the choice of images.
        held_out: The fraction of each class for validation, by the rule of `hold_out`.
        labels: "fine", or "coarse" for the 20 superclasses of CIFAR-100.
        official: Whether all 60,000 images must be there.
    """
    whole = read_cifar(source, name, labels, official)
    return long_tailed_images(whole, imbalance_ratio, profile, seed, held_out)
