"""Recipe: everything a training run depends on, checked as a whole.

Nothing here imports torch, so that a wrong recipe is told in a blink.
"""

from typing import Annotated, Literal

import msgspec

from longtail.flows.train import parts
from longtail.flows.train.data_sets import Data
from longtail.flows.train.parts import Section
from longtail.ranges import (
    Count,
    FractionBelowOne,
    NonNegative,
    Positive,
    Seed,
    Whole,
)


class DeferredReweighting(Section, frozen=True):
    """DRW: class-balanced weights from epoch `start` on, counted from 0.

    Attributes:
        start: The first epoch with weights.
        beta: How much samples of one class repeat each other.
        resample: Whether to draw by the weights instead of weighing the loss (DRS).
    """

    start: Whole
    beta: FractionBelowOne = 0.9999
    resample: bool = False


class Normalization(Section, frozen=True):
    """Mean and standard deviation of each channel, for values in 0 to 1."""

    mean: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    std: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels and std {len(self.std)}")


class Optimizer(Section, frozen=True):
    """How the weights move.

    Attributes:
        name: "sgd" or "adamw", which without weight decay is Adam; momentum and nesterov are for
            SGD.
        lr: The rate that the schedule multiplies.
        head_lr: That of the head; None for the same.
        momentum: Of SGD.
        nesterov: Whether it is Nesterov's.
        weight_decay: On all weights.
        clip_norm: The largest norm of a gradient; None for any.
        accumulate: How many parts a batch is cut into.
    """

    name: Literal["sgd", "adamw"] = "sgd"
    lr: Positive = 0.1
    head_lr: Positive | None = None
    momentum: FractionBelowOne = 0.9
    nesterov: bool = False
    weight_decay: NonNegative = 0.0
    clip_norm: Positive | None = None
    accumulate: Count = 1


class SecondStage(Section, frozen=True):
    """Heads fitted on the features of the trained backbone.

    Attributes:
        heads: Which ones; each is measured.
        batch_norm: Whether the statistics stay those of training or are estimated anew (NCM A.4).
    """

    heads: Annotated[tuple[parts.SecondHead, ...], msgspec.Meta(min_length=1)]
    batch_norm: Literal["keep", "reestimate"] = "keep"


class Target(Section, frozen=True):
    """Where the labels will follow another prior than in training.

    Attributes:
        prior: "uniform", "train", or a weight for each class.
        tau: How far to move there: 1 is all the way, "auto" is chosen on the validation part.
        criterion: What "auto" is chosen by.
    """

    prior: Literal["uniform", "train"] | tuple[NonNegative, ...] = "uniform"
    tau: float | Literal["auto"] = 1.0
    criterion: Literal["accuracy_under_target", "nll", "brier", "ece"] = "accuracy_under_target"

    def __post_init__(self) -> None:
        if self.tau != "auto" and self.criterion != "accuracy_under_target":
            raise ValueError("criterion is what tau is chosen by: set target.tau=auto too")


class Recipe(Section, frozen=True, kw_only=True):
    """A training run.

    Attributes:
        about: What it is, in one line.
        source: Where its numbers are from, and which of them no paper says.
        data: The images.
        backbone: From images to features.
        head: From features to logits.
        loss: What is minimised.
        drw: Deferred re-weighting of the loss; None for none.
        sampler: How images are drawn.
        augment: What is done to training images, the first first.
        normalize: Mean and deviation of the channels; None measures them on the training part.
        mixup: The α of mixup; None for none.
        optimizer: How the weights move.
        schedule: The learning rate over the epochs.
        epochs: How many.
        batch_size: Images a step, of all processes together.
        ema: The decay of a moving average of the weights, which is then the model; None for none.
        precision: Of the network's products.
        compile: Whether torch.compile is used.
        parallel: What several processes do with the network: "ddp" gives each a copy, "fsdp" shares
            it out, for less memory and more traffic.
        seed: Of the weights at the start, the batches and the augmentation.
        evaluate_every: Epochs between two looks at the validation part.
        num_workers: Processes that read image files.
        checkpoint_every: Steps between two checkpoints, beside those after every epoch.
        tensorboard: Whether TensorBoard's files are written beside log.csv.
        second_stage: Heads to fit on the features after training; None for none.
        target: The prior the scores are moved to in the end.
    """

    about: str = ""
    source: str = ""
    data: Data
    backbone: parts.Backbone = parts.BACKBONES["resnet32"]()
    head: parts.Head = parts.HEADS["linear"]()
    loss: parts.Loss = parts.LOSSES["cross_entropy"]()
    drw: DeferredReweighting | None = None
    sampler: parts.Sampler = parts.SAMPLERS["instance"]()
    augment: tuple[parts.Augmentation, ...] = ()
    normalize: Normalization | None = None
    mixup: Positive | None = None
    optimizer: Optimizer = Optimizer()
    schedule: parts.Schedule = parts.SCHEDULES["constant"]()
    epochs: Count = 30
    batch_size: Count = 128
    ema: FractionBelowOne | None = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: bool = False
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: Seed = 0
    evaluate_every: Count = 1
    num_workers: Whole = 0
    checkpoint_every: Count | None = None
    tensorboard: bool = False
    second_stage: SecondStage | None = None
    target: Target = Target()

    def __post_init__(self) -> None:
        _check_loss_fits(self)
        _check_experts_fit(self)
        _check_parallel_fits(self)
        _check_schedule_fits(self.schedule, self.epochs)
        if self.drw is not None and self.drw.start >= self.epochs:
            raise ValueError(
                f"drw.start is epoch {self.drw.start}, but there are {self.epochs} epochs: "
                "start earlier, or set drw=null"
            )
        if self.drw is not None and self.drw.resample and self.sampler.tag != "instance":
            raise ValueError(
                "drw.resample says how often to draw each class, and so does the sampler "
                f"{self.sampler.tag}: take one of them"
            )


def _check_loss_fits(recipe: Recipe) -> None:
    loss, head = recipe.loss, recipe.head
    offset = "estimated_offset"
    if loss.tag == offset and head.tag != offset:
        raise ValueError("the loss estimated_offset needs its head: set head=estimated_offset")
    if head.tag == offset and loss.tag != offset:
        raise ValueError(
            "only the loss estimated_offset moves the centres of the head estimated_offset: set "
            "loss=estimated_offset"
        )
    if loss.tag == "ldam":
        options = loss.values()
        scale = options["scale"] if options["scale_in"] == "head" else 1.0
        if head.tag != "cosine" or head.values() != {"scale": scale, "learn_scale": False}:
            raise ValueError(
                f"the loss ldam with scale_in={options['scale_in']} is for cosines times "
                f"{scale:g}: set head=cosine and head.scale={scale:g}, with head.learn_scale=false"
            )
    second = [] if recipe.second_stage is None else [h.tag for h in recipe.second_stage.heads]
    if "lws" in second and head.tag in ("cosine", "causal_norm"):
        raise ValueError(
            "the second-stage head lws scales the rows of a linear head, which cosine and "
            "causal_norm are not: leave it out, or set head=linear"
        )
    if recipe.mixup is not None and loss.tag in parts.HARD_LABELS_ONLY:
        raise ValueError(
            "mixup makes soft labels, which a loss on features or whole batches cannot take: set "
            "mixup=null"
        )


def _check_experts_fit(recipe: Recipe) -> None:
    """The loss, the head and the network of experts go together, and are of one number."""
    loss, head, network = recipe.loss, recipe.head, recipe.backbone
    taus = len(loss.values()["taus"]) if loss.tag == "experts" else None
    experts = head.values()["num_experts"] if head.tag == "experts" else None
    if taus != experts:
        raise ValueError(
            "the loss experts, with a tau for each, and the head experts, with as many "
            "num_experts, need each other: set both, such as loss.taus=[0,1,2] head.num_experts=3"
        )
    there = network.values().get("num_experts", experts)
    if there != experts:
        raise ValueError(
            f"the backbone has {there} experts: set head=experts loss=experts with as many"
        )
    if experts and recipe.second_stage is not None:
        raise ValueError(
            "second-stage heads start from one head, not from experts: set second_stage=null"
        )


def _check_parallel_fits(recipe: Recipe) -> None:
    if recipe.parallel == "ddp":
        return
    if recipe.loss.tag == "estimated_offset":
        raise ValueError(
            "the loss estimated_offset looks at the weights of the head, of which a process has "
            "only a part with fsdp: set parallel=ddp"
        )
    if recipe.head.values().get("learn_scale"):
        raise ValueError(
            "head.learn_scale learns a single number, which fsdp does not share out: set "
            "parallel=ddp, or head.learn_scale=false"
        )


def _check_schedule_fits(schedule: parts.Schedule, epochs: int) -> None:
    options = schedule.values()
    peak, warmup = options.get("peak", 0), options.get("warmup", 0)
    milestones = list(options.get("milestones", ()))
    if peak >= epochs:
        raise ValueError(
            f"schedule.peak is epoch {peak:g}, but the last one is {epochs}: set it "
            "lower, or as a share of all epochs, such as 0.25"
        )
    if warmup >= epochs:
        raise ValueError(
            f"schedule.warmup takes {warmup} epochs, but there are {epochs}: set it lower"
        )
    if milestones != sorted(set(milestones)):
        raise ValueError(f"milestones must rise, got {milestones}")
    if milestones and warmup > milestones[0]:
        raise ValueError(
            f"the warm-up of {warmup} epochs must be over by the first milestone, {milestones[0]}"
        )
