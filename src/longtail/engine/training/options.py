"""How to train: plain values, checked when they are made."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from longtail.core.numbers import check_seed
from longtail.engine.schedules import Constant
from longtail.ranges import (
    Count,
    FractionBelowOne,
    NonNegative,
    Pixels,
    Positive,
    Whole,
    check_fields,
)


class EpochSchedule(Protocol):
    """A schedule that counts epochs, and can be stretched to steps."""

    def __call__(self, step: int, /) -> float:
        """The factor on the learning rate."""

    def stretched(self, by: int) -> Self:
        """The same with every epoch divided into `by` steps."""


@dataclass(frozen=True)
class TrainingOptions:
    """What the loop is told.

    A batch that goes through in pieces has the gradient of the whole batch for losses that are
    means over samples, class weights included. Batch statistics, of losses such as LADE and ELM and
    of batch-norm, are those of the pieces.

    Of several processes, with "ddp" each has all of the model; with "fsdp" weights, gradients,
    optimiser and average are shared out, the weights put together block by block in every step:
    less memory, more traffic. Each still keeps one whole copy of the weights, to validate and to
    end with.
    """

    epochs: Whole
    batch_size: Count = 128  # images of one step, those of all processes together
    lr: Positive = 0.1
    head_lr: Positive | None = None  # of the head, where it is another one
    momentum: FractionBelowOne = 0.9
    nesterov: bool = False
    weight_decay: NonNegative = 0.0  # on all parameters; decoupled in AdamW
    optimizer: Literal["sgd", "adamw"] = "sgd"
    schedule: EpochSchedule = field(default_factory=Constant)  # counts epochs, multiplies the rates
    by_epoch: bool = False  # one rate for all steps of an epoch, as in most published code
    clip_norm: Positive | None = None  # the longest gradient; None for any length
    accumulate: Count = 1  # pieces that a batch goes through the model in, to save memory
    precision: Literal["float32", "bfloat16", "float16"] = "float32"  # autocast; float16 on a GPU
    ema: FractionBelowOne | None = None  # decay of averaged weights: validated, and what remains
    mixup: Positive | None = None  # its α
    # Before an epoch, counted from 0, images are scaled down to a size: (epoch, pixels), rising.
    early_sizes: tuple[tuple[Count, Pixels], ...] = ()
    compile: bool | str = False  # or the name of a backend of torch.compile
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: int = 0  # of augmentation and of whatever in the model is random
    num_workers: Whole = 0  # processes that read image files; 0 reads them in this one

    def __post_init__(self) -> None:
        check_fields(self)
        check_seed(self.seed)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov looks ahead along the momentum, but momentum is 0")
        if self.batch_size < self.accumulate:
            raise ValueError(
                f"a batch of {self.batch_size} cannot go through in {self.accumulate} pieces; "
                "lower accumulate"
            )
        ends = [until for until, _ in self.early_sizes]
        if ends != sorted(set(ends)):
            raise ValueError(f"the epochs of early_sizes must rise, got {self.early_sizes}")

    def size_in(self, epoch: int) -> int | None:
        """The side that images are scaled down to in an epoch; None as they are."""
        return next((size for until, size in self.early_sizes if epoch < until), None)
