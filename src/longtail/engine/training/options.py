"""How to train: plain values, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from longtail.core.numbers import check_number, check_whole
from longtail.engine.schedules import Constant

_CHOICES = {
    "optimizer": ("sgd", "adamw"),
    "precision": ("float32", "bfloat16", "float16"),
    "parallel": ("ddp", "fsdp"),
}


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
        epochs: How many; the sampler says what an epoch is.
        batch_size: Images of one step, those of all processes together.
        lr: The learning rate, which the schedule multiplies.
        head_lr: That of the head, where it is another one; the schedule multiplies it alike.
        momentum: Of SGD.
        nesterov: Whether SGD looks ahead.
        weight_decay: On all parameters; decoupled in AdamW.
        optimizer: "sgd" or "adamw".
        schedule: A value of `longtail.engine.schedules` that counts epochs. It is stretched to
            steps, so the rate moves within an epoch.
        by_epoch: Whether the rate stays the same for all steps of an epoch instead, as in most
            published code.
        clip_norm: The longest gradient; None for any length.
        accumulate: In how many pieces a batch goes through the model, to save memory. The gradient
            is that of the whole batch for losses that are means over samples, class weights
            included. Batch statistics, of losses such as LADE and ELM and of batch-norm, are those
            of the pieces.
        precision: What the model computes in, by autocast; weights stay float32. "float16" needs a
            GPU.
        ema: The decay of the moving average of weights, which is then what is validated and what
            the model ends with; None for none.
        mixup: α of mixup; None for none.
        compile: Whether to compile the model, or the name of a backend of torch.compile.
        parallel: What several processes do with the model. "ddp": each has all of it. "fsdp":
            weights, gradients, optimiser and average are shared out, the weights put together block
            by block in every step: less memory, more traffic. Each still keeps one whole copy of
            the weights, to validate and to end with. One process has nothing to share out.
        seed: Of augmentation and of whatever in the model is random.
        num_workers: Processes that read image files; 0 reads them in this one.

    >>> from longtail.engine.schedules import Cosine
    >>> TrainingOptions(epochs=30, batch_size=128, lr=0.1, schedule=Cosine(total=30)).nesterov
    False
    """

    epochs: int
    batch_size: int = 128
    lr: float = 0.1
    head_lr: float | None = None
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 0.0
    optimizer: Literal["sgd", "adamw"] = "sgd"
    schedule: EpochSchedule = field(default_factory=Constant)
    by_epoch: bool = False
    clip_norm: float | None = None
    accumulate: int = 1
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    ema: float | None = None
    mixup: float | None = None
    compile: bool | str = False
    parallel: Literal["ddp", "fsdp"] = "ddp"
    seed: int = 0
    num_workers: int = 0

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                listed = " or ".join(f'"{choice}"' for choice in allowed)
                raise ValueError(f"{name} must be {listed}, got {getattr(self, name)!r}")
        for name, least in (
            ("epochs", 0),
            ("batch_size", 1),
            ("accumulate", 1),
            ("num_workers", 0),
            ("seed", -math.inf),
        ):
            check_whole(getattr(self, name), name, least)
        if self.ema is not None:
            check_number(self.ema, "ema", least=0, below=1)
        if self.mixup is not None and not check_number(self.mixup, "mixup") > 0:
            raise ValueError(f"mixup must be positive, or None, got {self.mixup}")
        for name, rate in (("lr", self.lr), ("head_lr", self.head_lr)):
            if rate is not None and not (math.isfinite(rate) and rate > 0):
                raise ValueError(f"{name} must be positive and finite, got {rate}")
        if not 0 <= self.weight_decay < math.inf or not 0 <= self.momentum < 1:
            raise ValueError(
                "weight_decay must not be negative and momentum lie in [0, 1), "
                f"got {self.weight_decay} and {self.momentum}"
            )
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov looks ahead along the momentum, but momentum is 0")
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise ValueError(
                f"clip_norm must be positive and finite, or None, got {self.clip_norm}"
            )
        if self.batch_size < self.accumulate:
            raise ValueError(
                f"a batch of {self.batch_size} cannot go through in {self.accumulate} pieces; "
                "lower accumulate"
            )
