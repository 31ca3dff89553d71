"""Recipe: how a head is trained on cached features, with the numbers its paper gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longtail.core.numbers import check_number, check_whole


@dataclass(frozen=True)
class Recipe:
    """What to train a head with, by SGD. A head without one has nothing to train.

    Attributes:
        lr: The learning rate at the start.
        momentum: That of SGD.
        weight_decay: On all trained parameters.
        clip_value: Entries of the gradient are cut to plus or minus this; None leaves them.
        sampler: "instance" draws samples as they are, "class_balanced" every class as often.
        epochs: How many, each of as many samples as there are.
        batch_size: Samples a step.
        schedule: "cosine" lets the rate fall to zero, "constant" keeps it.
        tau: Above zero, the loss is logit-adjusted by so much (NCM eq. 9).

    >>> Recipe(lr=5.0, clip_value=0.1)
    Recipe(lr=5.0, momentum=0.9, weight_decay=0.0, clip_value=0.1, ... tau=0.0)
    """

    lr: float
    momentum: float = 0.9
    weight_decay: float = 0.0
    clip_value: float | None = None
    sampler: Literal["instance", "class_balanced"] = "class_balanced"
    epochs: int = 10
    batch_size: int = 512
    schedule: Literal["cosine", "constant"] = "cosine"
    tau: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            check_whole(getattr(self, name), name)
        for name in ("lr", "momentum", "weight_decay", "tau"):
            check_number(getattr(self, name), name, least=0)
        if self.clip_value is not None:
            check_number(self.clip_value, "clip_value", least=0)
        if self.epochs < 1 or self.batch_size < 1:
            raise ValueError(
                "a recipe needs at least one epoch and one sample a batch, "
                f"got epochs={self.epochs} and batch_size={self.batch_size}"
            )
        if self.schedule not in ("cosine", "constant"):
            raise ValueError(f'schedule must be "cosine" or "constant", got {self.schedule!r}')


CRT = Recipe(lr=0.2, weight_decay=5e-4)  # classifier re-training (Kang et al., 2020)
