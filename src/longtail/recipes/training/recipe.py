"""Recipe: everything a training run depends on, checked as a whole.

Nothing here imports torch, so that a wrong recipe is told in a blink.
"""

from typing import Literal

from longtail.recipes.training import input_options as inputs
from longtail.recipes.training import loss_options as losses
from longtail.recipes.training import model_options as models
from longtail.recipes.training import optimizer_options as optimizers
from longtail.recipes.training.data_options import Data
from longtail.recipes.training.section import Above, Positive, Section, Seed, ShareBelowOne, Whole


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
    backbone: models.Backbone = models.ResNet32()
    head: models.Head = models.Linear()
    loss: losses.Loss = losses.CrossEntropy()
    drw: losses.DeferredReweighting | None = None
    sampler: inputs.Sampler = inputs.Instance()
    augment: tuple[inputs.Augmentation, ...] = ()
    normalize: inputs.Normalization | None = None
    mixup: Above | None = None
    optimizer: optimizers.Optimizer = optimizers.Optimizer()
    schedule: optimizers.Schedule = optimizers.Constant()
    epochs: Positive = 30
    batch_size: Positive = 128
    ema: ShareBelowOne | None = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    compile: bool = False
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: Seed = 0
    evaluate_every: Positive = 1
    num_workers: Whole = 0
    checkpoint_every: Positive | None = None
    tensorboard: bool = False
    second_stage: optimizers.SecondStage | None = None
    target: optimizers.Target = optimizers.Target()

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
        drawn = self.sampler.__struct_config__.tag
        if self.drw is not None and self.drw.resample and drawn != "instance":
            raise ValueError(
                f"drw.resample says how often to draw each class, and so does the sampler {drawn}: "
                "take one of them"
            )


def _check_loss_fits(recipe: Recipe) -> None:
    loss, head = recipe.loss, recipe.head
    offsets = isinstance(loss, losses.EstimatedOffset)
    if offsets and not isinstance(head, models.EstimatedOffset):
        raise ValueError("the loss estimated_offset needs its head: set head=estimated_offset")
    if isinstance(head, models.EstimatedOffset) and not offsets:
        raise ValueError(
            "only the loss estimated_offset moves the centres of the head estimated_offset: set "
            "loss=estimated_offset"
        )
    if isinstance(loss, losses.LDAM):
        wanted = loss.scale if loss.scale_in == "head" else 1.0
        fits = isinstance(head, models.Cosine) and head.scale == wanted and not head.learn_scale
        if not fits:
            raise ValueError(
                f"the loss ldam with scale_in={loss.scale_in} is for cosines times {wanted:g}: set "
                f"head=cosine and head.scale={wanted:g}, with head.learn_scale=false"
            )
    stage = recipe.second_stage
    rescaled = stage and any(isinstance(h, optimizers.LearnableScale) for h in stage.heads)
    if rescaled and isinstance(head, (models.Cosine, models.CausalNorm)):
        raise ValueError(
            "the second-stage head lws scales the rows of a linear head, which cosine and "
            "causal_norm are not: leave it out, or set head=linear"
        )
    if recipe.mixup is not None and isinstance(loss, losses.HARD_LABELS_ONLY):
        raise ValueError(
            "mixup makes soft labels, which a loss on features or whole batches cannot take: set "
            "mixup=null"
        )


def _check_experts_fit(recipe: Recipe) -> None:
    """The loss, the head and the network of experts go together, and are of one number."""
    loss, head, network = recipe.loss, recipe.head, recipe.backbone
    numbers = {
        "loss": len(loss.taus) if isinstance(loss, losses.Experts) else None,
        "head": head.num_experts if isinstance(head, models.Experts) else None,
    }
    if numbers["loss"] != numbers["head"]:
        raise ValueError(
            "the loss experts, with a tau for each, and the head experts, with as many "
            "num_experts, need each other: set both, such as loss.taus=[0,1,2] head.num_experts=3"
        )
    if isinstance(network, models.ResNet32Experts) and network.num_experts != numbers["head"]:
        raise ValueError(
            f"the backbone has {network.num_experts} experts: set head=experts loss=experts "
            "with as many"
        )
    if numbers["head"] and recipe.second_stage is not None:
        raise ValueError(
            "second-stage heads start from one head, not from experts: set second_stage=null"
        )


def _check_parallel_fits(recipe: Recipe) -> None:
    if recipe.parallel == "ddp":
        return
    if isinstance(recipe.loss, losses.EstimatedOffset):
        raise ValueError(
            "the loss estimated_offset looks at the weights of the head, of which a process has "
            "only a part with fsdp: set parallel=ddp"
        )
    if isinstance(recipe.head, models.Cosine) and recipe.head.learn_scale:
        raise ValueError(
            "head.learn_scale learns a single number, which fsdp does not share out: set "
            "parallel=ddp, or head.learn_scale=false"
        )


def _check_schedule_fits(schedule: optimizers.Schedule, epochs: int) -> None:
    if isinstance(schedule, optimizers.OneCycle):
        if schedule.peak >= max(epochs, 1):
            raise ValueError(
                f"schedule.peak is epoch {schedule.peak:g}, but the last one is {epochs}: set it "
                "lower, or as a share of all epochs, such as 0.25"
            )
    elif schedule.warmup >= epochs:
        raise ValueError(
            f"schedule.warmup takes {schedule.warmup} epochs, but there are {epochs}: set it lower"
        )
