"""How to train: plain values, checked when they are made."""

from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from longtail.engine.schedules import Constant
from longtail.ranges import Count, FractionBelowOne, NonNegative, Positive, Whole, check_fields


class EpochSchedule(Protocol):
    """A schedule that counts epochs, and can be stretched to steps."""

    def __call__(self, step: int, /) -> float:
        """The factor on the learning rate."""

    def stretched(self, by: int) -> Self:
        """The same with every epoch divided into `by` steps."""


@dataclass(frozen=True)
class TrainingOptions:
    """What the loop is told.

    Attributes:
        batch_size: Images of one step, those of all processes together.
        head_lr: The learning rate of the head, where it is another one.
        weight_decay: On all parameters; decoupled in AdamW.
        schedule: A value of `longtail.engine.schedules` that counts epochs and multiplies the
            rates. It is stretched to steps, so the rate moves within an epoch; with `by_epoch` it
            stays the same for all steps of one, as in most published code.
        clip_norm: The longest gradient; None for any length.
        accumulate: In how many pieces a batch goes through the model, to save memory. The gradient
            is that of the whole batch for losses that are means over samples, class weights
            included. Batch statistics, of losses such as LADE and ELM and of batch-norm, are those
            of the pieces.
        precision: What the model computes in, by autocast; weights stay float32. "float16" needs a
            GPU.
        ema: The decay of the moving average of weights, which is then what is validated and what
            the model ends with.
        mixup: α of mixup.
        compile: Whether to compile the model, or the name of a backend of torch.compile.
        parallel: What several processes do with the model. "ddp": each has all of it. "fsdp":
            weights, gradients, optimiser and average are shared out, the weights put together block
            by block in every step: less memory, more traffic. Each still keeps one whole copy of
            the weights, to validate and to end with. One process has nothing to share out.
        seed: Of augmentation and of whatever in the model is random.
        num_workers: Processes that read image files; 0 reads them in this one.
    """

    epochs: Whole
    batch_size: Count = 128
    lr: Positive = 0.1
    head_lr: Positive | None = None
    momentum: FractionBelowOne = 0.9
    nesterov: bool = False
    weight_decay: NonNegative = 0.0
    optimizer: Literal["sgd", "adamw"] = "sgd"
    schedule: EpochSchedule = field(default_factory=Constant)
    by_epoch: bool = False
    clip_norm: Positive | None = None
    accumulate: Count = 1
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    ema: FractionBelowOne | None = None
    mixup: Positive | None = None
    compile: bool | str = False
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: int = 0
    num_workers: Whole = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov looks ahead along the momentum, but momentum is 0")
        if self.batch_size < self.accumulate:
            raise ValueError(
                f"a batch of {self.batch_size} cannot go through in {self.accumulate} pieces; "
                "lower accumulate"
            )
