"""The loop: epochs of steps, with a validation, a row of the log and a checkpoint after each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from longtail.core import Prior
from longtail.engine.epoch_sampler import carried_after
from longtail.engine.schedules import Schedule
from longtail.engine.training.events import EpochEnd, StepEnd
from longtail.engine.training.image_source import Batch, Source
from longtail.engine.training.inputs import Inputs
from longtail.engine.training.interruption import Interruption
from longtail.engine.training.learner import Learner
from longtail.engine.training.options import TrainingOptions
from longtail.engine.training.process_group import current_processes, mean_over_processes
from longtail.engine.training.progress import Progress, Row
from longtail.engine.training.random_state import mixed_seed
from longtail.engine.training.run_folder import RunFolder
from longtail.engine.training.validate import Validation
from longtail.images import ClassSampler
from longtail.losses import Deferred


@dataclass(frozen=True)
class Loop:
    """All that a run consists of, ready to go.

    Attributes:
        learner: The model and what changes it.
        sampler: Of this process.
        source: Where the images come from.
        inputs: What is made of them.
        rate: The factor on the learning rate at a step, counted over all epochs.
        steps: Of an epoch.
        options: How to train.
        folder: What is kept.
        validation: What is evaluated after an epoch; None for nothing.
        evaluate_every: Epochs from one validation to the next.
        checkpoint_every: Steps from one checkpoint to the next; None for only after epochs.
        log: Told of steps and epochs; None on processes that are silent.
    """

    learner: Learner
    sampler: ClassSampler
    source: Source
    inputs: Inputs
    rate: Schedule
    steps: int
    options: TrainingOptions
    folder: RunFolder
    validation: Validation | None
    evaluate_every: int
    checkpoint_every: int | None
    log: Callable[[StepEnd | EpochEnd], None] | None

    def run(self, asked: Interruption, stop_after: int | None) -> Progress:
        """Go on to the end, or until somebody asks to stop; how far it came."""
        epochs, steps, taken = self.options.epochs, self.steps, 0
        progress = self.folder.resume(self.learner, self.inputs.generator)
        while progress.epoch < epochs:
            epoch = progress.epoch
            carried = self.begin(epoch, done=progress.step)
            began = time.perf_counter() - progress.seconds
            for batch in self._batches(epoch, done=progress.step):
                lr = self.options.lr * self.rate(epoch * steps + progress.step)
                value = self.learner.step(*self.inputs(batch), lr)
                progress.step, taken = progress.step + 1, taken + 1
                _check_finite(value, epoch + 1, progress.step, lr)
                progress.loss_sum += value
                progress.seconds = time.perf_counter() - began
                if self.log is not None:
                    self.log(StepEnd(epoch + 1, epochs, progress.step, steps, value, lr))
                ended = progress.step == steps
                if ended:
                    self._end_epoch(progress, carried, lr)
                stopping = asked.signal is not None or taken == stop_after
                if ended or stopping or self._is_due(epoch * steps + progress.step):
                    self.sampler.set_epoch(progress.epoch, progress.step * self._size)
                    self.folder.save(
                        progress, self.learner, self.inputs.generator, self.sampler, carried
                    )
                if stopping:
                    return progress
        return progress

    def begin(self, epoch: int, done: int = 0) -> Prior | None:
        """Tell sampler and loss which epoch comes; what a model carries that is trained on it."""
        loss = self.learner.loss
        if isinstance(loss, Deferred):
            loss.set_epoch(epoch)
        self.sampler.set_epoch(epoch, done * self._size)
        takes_prior = self.learner.model.head.takes_prior
        return carried_after(loss, self.sampler) if takes_prior else None

    @property
    def _size(self) -> int:
        return self.options.batch_size // current_processes().world_size

    def _batches(self, epoch: int, done: int) -> Iterator[Batch]:
        seed = mixed_seed(self.options.seed, current_processes().rank, 2, epoch)
        return self.source.batches(list(self.sampler), self._size, seed, start=done * self._size)

    def _is_due(self, step: int) -> bool:
        return self.checkpoint_every is not None and step % self.checkpoint_every == 0

    def _end_epoch(self, progress: Progress, carried: Prior | None, lr: float) -> None:
        """Validate if it is time to, and close the books of the epoch."""
        mean = mean_over_processes(progress.loss_sum, self.learner.device) / self.steps
        images = len(self.sampler) + self.sampler.start
        progress.epoch += 1
        row: Row = {
            "epoch": progress.epoch,
            "step": progress.epoch * self.steps,
            "lr": lr,
            "train_loss": mean,
            "seconds": progress.seconds,
            "images_per_second": images * self.sampler.num_replicas / progress.seconds,
        }
        last = progress.epoch == self.options.epochs
        if self.validation is not None and (last or progress.epoch % self.evaluate_every == 0):
            row |= self.validation.row(carried)
        progress.history.append(row)
        progress.step, progress.loss_sum, progress.seconds = 0, 0.0, 0.0
        self.folder.write_row(row)
        if self.log is not None:
            self.log(EpochEnd(progress.epoch, self.options.epochs, row))


def _check_finite(value: float, epoch: int, step: int, lr: float) -> None:
    if not math.isfinite(value):
        raise FloatingPointError(
            f"the loss is {value} in epoch {epoch} at step {step}, with a learning rate of {lr:g}; "
            "lower the rate, warm it up or give clip_norm"
        )
