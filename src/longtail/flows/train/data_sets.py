"""The data of a recipe: which set, where it is, how it is cut, what is held out.

By default a tenth of each training class is held out, so that nothing has to be chosen on the test
part. Published figures train on all: held_out=0.
"""

from typing import Literal, TypeAlias

from longtail.flows.train.parts import Section
from longtail.ranges import Count, FractionBelowOne, Pixels, Ratio, Seed

Profile: TypeAlias = Literal["exp", "step", "pareto"]


class DataSet(Section, frozen=True, tag_field="kind"):
    """What all sets have.

    Attributes:
        path: The archive, folder or file; for `longtail train` it may come by --data.
        held_out: The fraction of each training class that becomes the validation part, where the
            set has none.
        seed: Decides which images are cut off and which are held out.
    """

    path: str | None = None
    held_out: FractionBelowOne = 0.1
    seed: Seed = 0


class CifarSet(DataSet, frozen=True):
    """A long-tailed cut of CIFAR.

    Attributes:
        imbalance_ratio: The largest class over the smallest.
        profile: How the counts fall in between.
        official: Whether all 60,000 images must be there.
    """

    imbalance_ratio: Ratio = 100.0
    profile: Profile = "exp"
    official: bool = True


class Cifar10(CifarSet, frozen=True, tag="cifar10"):
    """CIFAR-10-LT."""


class Cifar100(CifarSet, frozen=True, tag="cifar100"):
    """CIFAR-100-LT."""


class Cifar20(CifarSet, frozen=True, tag="cifar20"):
    """The 20 superclasses of CIFAR-100."""


class OwnSet(DataSet, frozen=True):
    """A set of one's own.

    Attributes:
        imbalance_ratio: Cut the training part to this ratio; None leaves it as it is.
        profile: Of such a cut.
        size: Images become squares of this many pixels a side as they are read; None leaves them.
        resize: What the shorter side is made first, before the middle is cut out; None for 8/7
            of `size`.
        random_crop: Whether training images are cut at a random place and scale instead.
    """

    imbalance_ratio: Ratio | None = None
    profile: Profile = "exp"
    size: Pixels | None = None
    resize: Pixels | None = None
    random_crop: bool = False

    def __post_init__(self) -> None:
        if self.imbalance_ratio is None and self.profile != "exp":
            raise ValueError("profile is that of a cut: set data.imbalance_ratio too")
        if self.size is None and (self.resize is not None or self.random_crop):
            raise ValueError("resize and random_crop need a size: set data.size")
        if self.size is not None and self.resize is not None and self.resize < self.size:
            raise ValueError(
                f"resize must be at least size, got {self.resize} and {self.size}; "
                "set data.resize=null for 8/7 of size"
            )


class Npz(OwnSet, frozen=True, tag="npz"):
    """One file with train_images, train_labels and so on."""


class ImageFolder(OwnSet, frozen=True, tag="folder"):
    """A folder class/file, or train/class/file with val and test beside train where they are."""


class ImageLists(OwnSet, frozen=True, kw_only=True, tag="lists"):
    """List files as they are published; their names start from `path`, as the images do.

    Attributes:
        train: The list of the training part.
        validation: That of the validation part.
        test: That of the test part.
        classes: A file that names the classes, where the lists do not number them.
        num_classes: How many there are; by default as the training list says.
    """

    train: str
    validation: str | None = None
    test: str | None = None
    classes: str | None = None
    num_classes: Count | None = None


class HuggingFace(OwnSet, frozen=True, tag="hf"):
    """What `datasets.load_dataset(path)` or a folder of `save_to_disk` gives, split by split.

    Attributes:
        image_column: The column of images.
        label_column: The column of labels.
    """

    image_column: str = "image"
    label_column: str = "label"


Data: TypeAlias = Cifar10 | Cifar100 | Cifar20 | Npz | ImageFolder | ImageLists | HuggingFace
