"""Recipe: everything a training run depends on, checked as a whole.

Nothing here imports torch, so that a wrong recipe is refused in a blink.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from longtail.flows.train import parts
from longtail.flows.train.conflicts import conflicts_of
from longtail.flows.train.parts import Section
from longtail.group_edges import DEFAULT_EDGES, GroupEdges
from longtail.ranges import (
    Count,
    FractionBelowOne,
    NonNegative,
    Pixels,
    Positive,
    Ratio,
    Seed,
    Whole,
)

Profile: TypeAlias = Literal["exp", "step", "pareto"]
FOLDS = 5  # of a validation part that chooses τ: each is moved by what the others choose


class DataSet(Section, frozen=True, tag_field="kind"):
    """Which set, where it is, how it is cut, and what of it is for validation.

    By default that is a tenth of each training class, where the set has no validation part, so that
    nothing has to be chosen on the test part. Published figures train on all: validation_share=0.
    """

    path: str | None = None  # the archive, folder or file; for `longtail train` also by --data
    validation_share: FractionBelowOne = 0.1
    seed: Seed = 0  # decides which images are cut off and which are for validation

    @property
    def needed(self) -> str:
        """What has to be at `path`, in a few words."""
        return "an .npz file"


class CifarSet(DataSet, frozen=True):
    """A long-tailed cut of CIFAR."""

    imbalance_ratio: Ratio = 100.0
    profile: Profile = "exp"  # how the counts fall from the largest class to the smallest
    official: bool = True  # whether all 60,000 images must be there

    @property
    def needed(self) -> str:
        """Either of the two archives."""
        return "CIFAR-100"


class Cifar10(CifarSet, frozen=True, tag="cifar10"):
    """CIFAR-10-LT."""

    @property
    def needed(self) -> str:
        """The smaller one."""
        return "CIFAR-10"


class Cifar100(CifarSet, frozen=True, tag="cifar100"):
    """CIFAR-100-LT."""


class Cifar20(CifarSet, frozen=True, tag="cifar20"):
    """The 20 superclasses of CIFAR-100."""


class OwnSet(DataSet, frozen=True):
    """A set of one's own."""

    imbalance_ratio: Ratio | None = None  # cut the training part to this; None leaves it as it is
    profile: Profile = "exp"
    size: Pixels | None = None  # images become squares of this side as they are read; None: not
    resize: Pixels | None = None  # of the shorter side, before the middle is cut out; None: 8/7
    # Whether training images are cut at a random place and scale, or "place" alone.
    random_crop: bool | Literal["place"] = False

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

    @property
    def needed(self) -> str:
        """In its plain form."""
        return "a folder class/file"


class ImageLists(OwnSet, frozen=True, kw_only=True, tag="lists"):
    """List files as they are published; their names start from `path`, as the images do."""

    train: str
    validation: str | None = None
    test: str | None = None
    classes: str | None = None  # a file that names the classes, where the lists do not number them
    num_classes: Count | None = None  # by default as the training list says

    @property
    def needed(self) -> str:
        """By the list that tells which images they are."""
        return f"images and {self.train}"


class HuggingFace(OwnSet, frozen=True, tag="hf"):
    """What `datasets.load_dataset(path)` or a folder of `save_to_disk` gives, split by split."""

    image_column: str = "image"
    label_column: str = "label"

    @property
    def needed(self) -> str:
        """As it is called."""
        return "a data set of Hugging Face"


Data: TypeAlias = Cifar10 | Cifar100 | Cifar20 | Npz | ImageFolder | ImageLists | HuggingFace


class DeferredReweighting(Section, frozen=True):
    """DRW: class-balanced weights from epoch `start` on, counted from 0."""

    start: Whole
    beta: FractionBelowOne = 0.9999  # how much samples of one class repeat each other
    resample: bool = False  # whether to draw by the weights instead of weighing the loss (DRS)


class Normalization(Section, frozen=True):
    """Mean and standard deviation of each channel, for values in 0 to 1."""

    mean: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    std: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")


class EarlySize(Section, frozen=True):
    """Images of fewer pixels in the first part of training, which saves time."""

    until: Count  # the first epoch with larger ones
    size: Pixels  # of a side, to which they are scaled down


class Optimizer(Section, frozen=True):
    """How the weights move; momentum and nesterov are for SGD."""

    name: Literal["sgd", "adamw"] = "sgd"  # adamw without weight decay is Adam
    lr: Positive = 0.1  # what the schedule multiplies
    head_lr: Positive | None = None  # that of the head; None for the same
    momentum: FractionBelowOne = 0.9
    nesterov: bool = False
    weight_decay: NonNegative = 0.0  # on all weights
    clip_norm: Positive | None = None  # the largest norm of a gradient; None for any
    accumulate: Count = 1  # parts that a batch is cut into


# The statistics of training, or new ones: over every image once, or over all classes alike.
BatchNorm: TypeAlias = Literal["keep", "reestimate", "reestimate_class_balanced"]


class SecondStage(Section, frozen=True):
    """Heads fitted on the features of the trained backbone; each is measured."""

    heads: Annotated[tuple[parts.SecondHead, ...], msgspec.Meta(min_length=1)]
    batch_norm: BatchNorm = "keep"


class Target(Section, frozen=True):
    """Where the labels will follow another prior than in training."""

    prior: Literal["uniform", "train"] | tuple[NonNegative, ...] = "uniform"
    tau: float | Literal["auto"] = 1.0  # how far to move there: 1 is all the way
    # What "auto" is chosen by, on the validation part.
    criterion: Literal["accuracy_under_target", "nll", "brier", "ece"] = "accuracy_under_target"

    def __post_init__(self) -> None:
        if self.tau != "auto" and self.criterion != "accuracy_under_target":
            raise ValueError("criterion is what tau is chosen by: set target.tau=auto too")


class Recipe(Section, frozen=True, kw_only=True):
    """A training run; None stands for what is not done."""

    about: str = ""  # what it is, in one line
    source: str = ""  # where its numbers are from, and which of them no paper says
    data: Data
    backbone: parts.Backbone = parts.BACKBONES["resnet32"]()
    start: str | None = None  # a run, or its model file, whose trained backbone this begins with
    head: parts.Head = parts.HEADS["linear"]()
    loss: parts.Loss = parts.LOSSES["cross_entropy"]()
    terms: tuple[parts.Term, ...] = ()  # on the features, beside the loss
    drw: DeferredReweighting | None = None
    sampler: parts.Sampler = parts.SAMPLERS["instance"]()
    augment: tuple[parts.Augmentation, ...] = ()  # of training images, the first first
    normalize: Normalization | None = None  # None measures it on the training part
    early_sizes: tuple[EarlySize, ...] = ()  # of images, in the epochs before they have their own
    mixup: Positive | None = None  # its α
    optimizer: Optimizer = Optimizer()
    schedule: parts.Schedule = parts.SCHEDULES["constant"]()
    epochs: Count = 30
    batch_size: Count = 128  # images a step, of all processes together
    ema: FractionBelowOne | None = None  # decay of a moving average of the weights: the model then
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # of the network's products
    compile: bool = False
    # "ddp" gives each process a copy of the network, "fsdp" a part: less memory, more traffic.
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: Seed = 0  # of the weights at the start, the batches and the augmentation
    evaluate_every: Count = 1  # epochs between two looks at the validation part
    num_workers: Whole = 0  # processes that read image files
    checkpoint_every: Count | None = None  # steps; there is one after every epoch anyway
    tensorboard: bool = False  # whether TensorBoard's files are written beside log.csv
    # Of experts: all alike, or those of the least log-loss under the target on the validation part.
    expert_weights: Literal["equal", "validation"] = "equal"
    second_stage: SecondStage | None = None
    target: Target = Target()
    groups: str = str(DEFAULT_EDGES)  # the edges of many, medium and few

    def __post_init__(self) -> None:
        GroupEdges.of(self.groups)
        for conflict in conflicts_of(self):
            raise ValueError(conflict)
