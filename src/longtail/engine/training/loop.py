"""The loop: epochs of steps, with a validation, a row of the log and a checkpoint after each."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from torch import Tensor

from longtail.core import GroupsLike, Prior, Scores
from longtail.engine.epoch_sampler import carried_after
from longtail.engine.schedules import Schedule
from longtail.engine.training.image_source import Inputs, Source
from longtail.engine.training.learner import Learner
from longtail.engine.training.model import predict_source
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.process_group import current_processes, mean_over_processes
from longtail.engine.training.run_folder import UNIFORM, VALIDATED, RunFolder
from longtail.engine.training.run_state import Row, RunState, seed_of
from longtail.images import ClassSampler
from longtail.images.augment import Normalize
from longtail.metrics import evaluate


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


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """Somebody asked to stop, by a signal."""

    def __init__(self, number: int, where: str) -> None:
        super().__init__(f"stopped by signal {number}, {where}")
        self.signal = number


class Interruption:
    """Whether somebody asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.process = os.getpid()

    def note(self, number: int, frame: FrameType | None) -> None:
        """Remember a first signal; a second one interrupts at once."""
        if os.getpid() != self.process:
            # A worker that reads images: Ctrl-C is not its business, to be ended is.
            if number == signal.SIGTERM:
                os._exit(128 + number)
            return
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def interruption(catch: bool) -> Iterator[Interruption]:
    """Signals are noted instead of interrupting; only in the main thread, where Python has them."""
    interrupt = Interruption()
    if not catch or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = {number: signal.signal(number, interrupt.note) for number in _SIGNALS}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class EpochValidation:
    """Evaluates what a learner predicts with, every so many epochs."""

    source: Source
    labels: Tensor
    counts: Tensor  # of the training images
    normalize: Normalize
    every: int
    groups: GroupsLike | None = None  # the edges of many, medium and few

    def row(self, learner: Learner, carried: Prior | None) -> Row:
        """Metrics of the logits as they are, and the balanced accuracy under the uniform prior."""
        model, size = learner.predictor(), learner.options.batch_size
        outputs = predict_source(model, self.source, len(self.labels), self.normalize, size)
        scores = Scores(outputs.logits, self.labels, carried, self.counts, split="validation")
        uniform = None
        if carried is not None:
            target = Prior.uniform(scores.num_classes)
            uniform = evaluate(scores, target=target)["balanced_accuracy"]
        metrics = evaluate(scores, groups=self.groups)
        row: Row = {f"val_{name}": metrics.get(name) for name in VALIDATED}
        return row | {UNIFORM: uniform}


@dataclass(frozen=True)
class Loop:
    """All that a run consists of, ready to go."""

    learner: Learner
    sampler: ClassSampler  # of this process
    source: Source
    inputs: Inputs
    rate: Schedule  # the factor on the learning rate at a step, counted over all epochs
    steps: int  # of an epoch
    options: TrainingOptions
    folder: RunFolder
    validation: EpochValidation | None
    checkpoint_every: int | None  # steps
    progress: Callable[[StepEnd | EpochEnd], None] | None

    def run(self, interrupt: Interruption, stop_after: int | None) -> RunState:
        """Go on to the end, or until somebody asks to stop; how far it came."""
        epochs, steps, taken = self.options.epochs, self.steps, 0
        state = self.folder.resume(self.learner, self.inputs.generator)
        while state.epoch < epochs:
            epoch = state.epoch
            carried = self.begin(epoch, done=state.step)
            began = time.perf_counter() - state.seconds
            seed = seed_of(self.options.seed, current_processes().rank, 2, epoch)
            size = self.options.size_in(epoch)
            order, done = list(self.sampler), state.step * self._size
            for batch in self.source.batches(order, self._size, seed, start=done):
                lr = self.options.lr * self.rate(epoch * steps + state.step)
                value = self.learner.step(*self.inputs(batch, size), lr)
                state.step, taken = state.step + 1, taken + 1
                if not math.isfinite(value):
                    raise FloatingPointError(
                        f"the loss is {value} in epoch {epoch + 1} at step {state.step}, with a "
                        f"learning rate of {lr:g}; lower the rate, warm it up or give clip_norm"
                    )
                state.loss_sum += value
                state.seconds = time.perf_counter() - began
                if self.progress is not None:
                    self.progress(StepEnd(epoch + 1, epochs, state.step, steps, value, lr))
                ended = state.step == steps
                if ended:
                    self._end_epoch(state, carried, lr)
                stopping = interrupt.signal is not None or taken == stop_after
                every, step = self.checkpoint_every, epoch * steps + state.step
                if ended or stopping or (every is not None and step % every == 0):
                    self.sampler.set_epoch(state.epoch, state.step * self._size)
                    generator = self.inputs.generator
                    self.folder.save(state, self.learner, generator, self.sampler, carried)
                if stopping:
                    return state
        return state

    def begin(self, epoch: int, done: int = 0) -> Prior | None:
        """Tell sampler and loss which epoch comes; what a model carries that is trained on it."""
        self.learner.loss.set_epoch(epoch)
        self.sampler.set_epoch(epoch, done * self._size)
        takes_prior = self.learner.model.head.takes_prior
        return carried_after(self.learner.loss, self.sampler) if takes_prior else None

    @property
    def _size(self) -> int:
        return self.options.batch_size // current_processes().world_size

    def _end_epoch(self, state: RunState, carried: Prior | None, lr: float) -> None:
        """Validate if it is time to, and close the books of the epoch."""
        mean = mean_over_processes(state.loss_sum, self.learner.device) / self.steps
        images = len(self.sampler) + self.sampler.start
        state.epoch += 1
        row: Row = {
            "epoch": state.epoch,
            "step": state.epoch * self.steps,
            "lr": lr,
            "train_loss": mean,
            "seconds": state.seconds,
            "images_per_second": images * self.sampler.num_replicas / state.seconds,
        }
        last = state.epoch == self.options.epochs
        if self.validation is not None and (last or state.epoch % self.validation.every == 0):
            row |= self.validation.row(self.learner, carried)
        state.history.append(row)
        state.step, state.loss_sum, state.seconds = 0, 0.0, 0.0
        self.folder.write_row(row)
        if self.progress is not None:
            self.progress(EpochEnd(state.epoch, self.options.epochs, row))
