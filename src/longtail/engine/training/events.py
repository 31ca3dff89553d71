"""What a run tells whoever watches it: one event after each step, one after each epoch."""

from __future__ import annotations

from typing import NamedTuple


class StepEnd(NamedTuple):
    """A step is done. Counts start at 1; `loss` is that of this process's part of the batch."""

    epoch: int
    epochs: int
    step: int  # in this epoch
    steps: int  # of an epoch
    loss: float
    lr: float


class EpochEnd(NamedTuple):
    """An epoch is done; `row` is what the log says of it."""

    epoch: int
    epochs: int
    row: dict[str, float | None]
